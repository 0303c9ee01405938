#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "experiments.h"
#include "page_lists.h"
#include "phases.h"
#include "respill.h"

namespace attest::hardware {
namespace {

constexpr std::int64_t kSpilled = 256 * kMiB;  // of the buffer: where global words are stored
constexpr std::int64_t kKiB = 1024;

struct Way {
  const char* how;
  Store store;
  std::int64_t sm_stride = 0, warp_stride = 0;
};

void respill(const Bench& bench) {
  const auto row = [&](const char* how, const Respill& r) {
    bench.row(how, r.store == Store::registers ? spilled_words(r.words) : r.words, r.turns, r.ctas, r.loads,
              r.shared_bytes / kMiB);
    run_respill(r, bench.buffer, kSpilled);
  };
  const Way ways[] = {{"local", Store::local},
                      {"local_256", Store::local_256},
                      {"global_640", Store::global, 160 * kKiB, 20 * kKiB},
                      {"global_1024", Store::global, 256 * kKiB, 32 * kKiB},
                      {"global_2048k", Store::global, 2048 * kKiB, 32 * kKiB}};
  // one wave, nothing else
  for (const Way& way : ways)
    for (const int words : {40, 80, 100, 120, 140, 158})
      for (const int turns : {1, 2, 8})
        row(way.how, {.store = way.store,
                      .words = words,
                      .turns = turns,
                      .sm_stride = way.sm_stride,
                      .warp_stride = way.warp_stride});
  // CTAs that follow each other
  for (const Way& way : {ways[0], ways[1]})
    for (const int words : {40, 80, 120, 158})
      for (const int turns : {1, 8})
        for (const int waves : {2, 4, 8})
          row(way.how, {.store = way.store, .words = words, .turns = turns, .ctas = 264 * waves});
  // beside heads that are read four times
  for (const int mib : {8, 16, 24}) {
    const Respill heads{.turns = mib * 4 * 4, .shared_bytes = mib * kMiB};
    for (const bool loads : {false, true})
      for (const int words : {40, 80, 120, 158}) {
        Respill r = heads;
        r.words = words, r.loads = loads;
        row("local", r);
        r.store = Store::global, r.sm_stride = 2048 * kKiB, r.warp_stride = 32 * kKiB;
        row("global_2048k", r);
      }
    row("local", heads);
    for (const int values : {48, 96, 144, 176}) {
      Respill r = heads;
      r.store = Store::registers, r.words = values;
      row("registers", r);
    }
  }
}

// Few words in each turn and words that are parked for a CTA's life, beside heads as long as to displace them.
void park(const Bench& bench) {
  for (const int mib : {16, 32, 64})
    for (const int words : {0, 14})
      for (const int parked : {0, 14, 28})
        for (const int waves : {1, 4}) {
          if (words + parked == 0) continue;
          bench.row(words, parked, 264 * waves, mib);
          run_respill(
              {.words = words, .turns = mib * 4 * 2, .parked = parked, .ctas = 264 * waves, .shared_bytes = mib * kMiB},
              bench.buffer, kSpilled);
        }
}

/// The pages of so many steps: what all SMs write at a time, from a list.
class Steps {
 public:
  explicit Steps(std::vector<std::uint32_t> pages) : list_(pages) {}
  Phase phase(PhaseOp op, int step) const {
    return {.op = op, .bytes = kPages * kPageBytes, .pages = list_.data() + step * kPages};
  }
  static constexpr int kPages = 132 * 4;

 private:
  const PageList list_;
};

// Pages at random that are written round after round, by the same SMs, with a barrier after each step, so that lines
// are written in exactly this order.
void rewrite_steps(const Bench& bench) {
  const Steps pages(scattered_pages(bench.homes.size(), 1));
  std::mt19937 random(7);
  for (const int steps : {8, 10, 12})
    for (const char* how : {"in_one_order", "there_and_back", "at_random"})
      for (int rounds = 1; rounds * steps <= kMostPhases; ++rounds) {
        bench.row(how, steps, rounds);
        std::vector<int> order(static_cast<std::size_t>(steps));
        std::iota(order.begin(), order.end(), 0);
        std::vector<Phase> phases;
        for (int round = 0; round < rounds; ++round) {
          for (const int step : order) phases.push_back(pages.phase(PhaseOp::write, step));
          if (how == std::string("there_and_back")) std::reverse(order.begin(), order.end());
          if (how == std::string("at_random")) std::shuffle(order.begin(), order.end(), random);
        }
        run_phases(phases, bench.buffer, bench.sms);
      }
  // which lines are cleaned: a capital writes 5 steps (c: 3), a small letter reads them
  for (const char* how : {"A", "AB", "ABC", "ABCA", "ABCB", "ABAC", "ABACA", "ABACB", "ABaC", "ABaCA", "ABaCB"}) {
    bench.row(how, 0, 1);
    std::vector<Phase> phases;
    for (const char* c = how; *c != 0; ++c) {
      const int set = (*c | 32) - 'a';
      for (int step = 0; step < (set == 2 ? 3 : 5); ++step)
        phases.push_back(pages.phase(*c < 'a' ? PhaseOp::write : PhaseOp::read, set * 5 + step));
    }
    run_phases(phases, bench.buffer, bench.sms);
  }
}

// Which of the lines that were written in order have been cleaned: a step that is written again costs as many as have.
// A capital letter writes a step, a small one reads it; + reads 4 MiB that all SMs share, . waits.
void cleaned_steps(const Bench& bench) {
  const Steps pages(scattered_pages(bench.homes.size(), 1));
  const std::string all = "ABCDEFGHIJKLM";
  const auto row = [&](const std::string& how) {
    bench.row(how);
    std::vector<Phase> phases;
    for (const char c : how) {
      if (c == '+')
        phases.push_back({.op = PhaseOp::read, .workers = Workers::both_sides, .bytes = 4 * kMiB, .base = 640 * kMiB});
      else if (c == '.')
        phases.push_back({.op = PhaseOp::spin, .microseconds = 200});
      else
        phases.push_back(pages.phase(c < 'a' ? PhaseOp::write : PhaseOp::read, (c | 32) - 'a'));
    }
    run_phases(phases, bench.buffer, bench.sms);
  };
  const auto then_each = [&](const std::string& before, const std::string& again) {
    row(before);
    for (const char c : again) row(before + c);
  };
  const auto after_each = [&](char what) {
    std::string how;
    for (const char c : all) how += c, how += what;
    return how;
  };
  then_each(all, all);
  then_each(all + all, all);
  then_each(all + all + all + all, all);
  for (const char* read : {"a", "c", "e", "g", "i", "aaaa", "abcdefghi", "ihgfedcba"})
    then_each(all.substr(0, 9) + read + all.substr(9), "ACEGI");
  then_each(after_each('+'), "ACEGIK");
  then_each(after_each('.'), "ACEGIK");
  // turns of which each step is read so many steps after it was written
  for (const std::size_t behind : {0, 3, 5, 9, 13}) {
    std::string turn;
    for (std::size_t i = 0; i < all.size() + behind; ++i) {
      if (i < all.size()) turn += all[i];
      if (behind > 0 && i >= behind) turn += static_cast<char>(all[i - behind] | 32);
    }
    std::string turns;
    for (; turns.size() + turn.size() <= kMostPhases; turns += turn) row(turns + turn);
  }
}

}  // namespace

std::vector<Experiment> respill_experiments() {
  return {{"respill", "how,words,turns,ctas,loads,shared_mib", respill},
          {"park", "words,parked,ctas,shared_mib", park},
          {"rewrite_steps", "how,steps,rounds", rewrite_steps},
          {"cleaned_steps", "how", cleaned_steps}};
}

}  // namespace attest::hardware
