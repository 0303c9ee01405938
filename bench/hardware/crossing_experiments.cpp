// What crosses between L2's partitions, by who moves the data, with what and how much of a line
// (docs/results/h200-l2.md).
#include "experiments.h"
#include "page_lists.h"
#include "phases.h"

namespace attest::hardware {
namespace {

Phase phase_of(PhaseOp op, Workers workers, int size, const PageList& pages) {
  return {.op = op, .workers = workers, .bytes = size * kMiB, .pages = pages.data()};
}

struct Mover {
  const char* who;
  Workers workers;
  int home;
};
constexpr Mover its_own{"its_own", Workers::side0, 0}, the_others{"the_others", Workers::side0, 1},
    both_sides{"both_sides", Workers::both_sides, 0};

struct Way {
  const char* how;
  PhaseOp op;
};

void move_pages(const Bench& bench, const std::vector<Mover>& movers, const std::vector<Way>& ways) {
  for (const Mover& mover : movers)
    for (const Way& way : ways)
      for (const int rounds : {1, 2})
        for (const int size : {8, 16}) {
          bench.row(mover.who, way.how, size, rounds);
          const PageList pages(pages_of_home(bench.homes, mover.home));
          Phase phase = phase_of(way.op, mover.workers, size, pages);
          phase.rounds = rounds;
          run_phases({phase}, bench.buffer, bench.sms);
        }
}

// What a hint costs between the partitions: pages read once or twice by one side, of its own half of memory or the
// other's, or by both sides.
void hinted_read(const Bench& bench) {
  move_pages(
      bench, {its_own, the_others, both_sides},
      {{"none", PhaseOp::read}, {"evict_first", PhaseOp::read_evict_first}, {"evict_last", PhaseOp::read_evict_last}});
}

// What the copy engine's reads and writes cost between the partitions, beside those of threads.
void bulk_move(const Bench& bench) {
  move_pages(bench, {its_own, the_others},
             {{"read", PhaseOp::read},
              {"read_bulk", PhaseOp::read_bulk},
              {"read_box", PhaseOp::read_box},
              {"read_box_evict_first", PhaseOp::read_box_evict_first},
              {"read_box_evict_last", PhaseOp::read_box_evict_last},
              {"write", PhaseOp::write},
              {"write_bulk", PhaseOp::write_bulk},
              {"write_bulk_lines", PhaseOp::write_bulk_lines},
              {"write_box", PhaseOp::write_box}});
}

// Parts of lines, half of them homed on the side that moves them: what crosses, and whether the rest of a line that
// follows later crosses again.
void parts_of_lines(const Bench& bench) {
  for (const Way& way : {Way{"read", PhaseOp::read}, Way{"read_async", PhaseOp::read_async},
                         Way{"read_async_line", PhaseOp::read_async_line}, Way{"write", PhaseOp::write}})
    for (const int row_bytes : {128, 96, 64, 32})
      for (const bool rest : {false, true})
        for (const int lines : {8, 16}) {
          bench.row(way.how, row_bytes, rest ? "then_the_rest" : "alone", lines);
          const auto phase = [&](int from, int to) {
            return Phase{.op = way.op,
                         .workers = Workers::side0,
                         .bytes = lines * kMiB * (to - from) / 128,
                         .base = from,
                         .row_bytes = to - from,
                         .row_stride = 128};
          };
          std::vector<Phase> phases = {phase(0, row_bytes)};
          if (rest && row_bytes < 128) phases.push_back(phase(row_bytes, 128));
          run_phases(phases, bench.buffer, bench.sms);
        }
}

// What a prefetch to L2 leaves a read that follows to fetch: alone, long before it, or straight before it.
void prefetched_read(const Bench& bench) {
  const Way prefetches[] = {{"none", PhaseOp::spin},
                            {"prefetch", PhaseOp::prefetch},
                            {"prefetch_bulk", PhaseOp::prefetch_bulk},
                            {"prefetch_box", PhaseOp::prefetch_box}};
  const Way reads[] = {{"none", PhaseOp::spin},
                       {"read", PhaseOp::read},
                       {"read_box", PhaseOp::read_box},
                       {"read_box_evict_first", PhaseOp::read_box_evict_first},
                       {"prefetch_and_read_box", PhaseOp::prefetch_and_read_box}};
  for (const Mover& mover : {its_own, the_others})
    for (const Way& prefetch : prefetches)
      for (const Way& read : reads)
        for (const int size : {8, 16}) {
          bench.row(mover.who, prefetch.how, read.how, size);
          const PageList pages(pages_of_home(bench.homes, mover.home));
          const Phase wait{.op = PhaseOp::spin, .microseconds = 20};
          std::vector<Phase> phases = {wait};
          if (prefetch.op != PhaseOp::spin) phases.push_back(phase_of(prefetch.op, mover.workers, size, pages));
          phases.push_back(wait);
          if (read.op != PhaseOp::spin) phases.push_back(phase_of(read.op, mover.workers, size, pages));
          run_phases(phases, bench.buffer, bench.sms);
        }
}

// Lines that several GPCs of a side read at about the same time, under way or not, by each kind of read.
void shared_read(const Bench& bench) {
  const std::pair<const char*, Workers> readers[] = {{"side0", Workers::side0},
                                                     {"gpcs_of_side0", Workers::gpcs_of_side0},
                                                     {"both_sides", Workers::both_sides},
                                                     {"every_gpc", Workers::every_gpc}};
  for (const auto& [who, workers] : readers)
    for (const Way& way : {Way{"read", PhaseOp::read}, Way{"read_async", PhaseOp::read_async},
                           Way{"read_async_line", PhaseOp::read_async_line}, Way{"read_box", PhaseOp::read_box}})
      for (const int rounds : {1, 2})
        for (const int size : {8, 16}) {
          bench.row(who, way.how, size, rounds);
          run_phases({{.op = way.op, .workers = workers, .bytes = size * kMiB, .rounds = rounds}}, bench.buffer,
                     bench.sms);
        }
}

}  // namespace

std::vector<Experiment> crossing_experiments() {
  return {{"hinted_read", "who,hint,mib,rounds", hinted_read},
          {"bulk_move", "who,how,mib,rounds", bulk_move},
          {"parts_of_lines", "op,row_bytes,rest,mib_of_lines", parts_of_lines},
          {"prefetched_read", "who,prefetch,read,mib", prefetched_read},
          {"shared_read", "who,how,mib,rounds", shared_read}};
}

}  // namespace attest::hardware
