#include "experiments.h"
#include "page_lists.h"
#include "phases.h"

namespace attest::hardware {
namespace {

constexpr int kRounds = 5;

// The bytes `rounds` times, in step.
Phase cyclic(Workers workers, int size, const std::uint32_t* pages = nullptr) {
  return {.workers = workers, .bytes = size * kMiB, .pages = pages, .rounds = kRounds};
}

void cyclic_read(const Bench& bench) {
  const PageList pages4(scattered_pages(bench.homes.size(), 1));
  const PageList pages16(scattered_pages(bench.homes.size(), 4));
  const PageList home0(pages_of_home(bench.homes, 0));
  const PageList home1(pages_of_home(bench.homes, 1));
  const auto row = [&](const char* who, const char* layout, int size, Phase phase) {
    bench.row(who, layout, size, kRounds, phase.rotate);
    run_phases({phase}, bench.buffer, bench.sms);
  };
  for (const int size : {16, 20, 22, 24, 26, 28, 29, 30, 31, 32, 34, 36, 40}) {
    row("both_sides", "contiguous", size, cyclic(Workers::both_sides, size));
    row("both_sides", "random_4k", size, cyclic(Workers::both_sides, size, pages4.data()));
    row("both_sides", "random_16k", size, cyclic(Workers::both_sides, size, pages16.data()));
    row("side0", "contiguous", size, cyclic(Workers::side0, size));
    row("side0", "random_4k", size, cyclic(Workers::side0, size, pages4.data()));
    row("side0", "home0", size, cyclic(Workers::side0, size, home0.data()));
    row("side0", "home1", size, cyclic(Workers::side0, size, home1.data()));
  }
  for (const int size : {24, 32, 40, 48, 56, 64}) {
    for (const int rotate : {0, 37}) {
      Phase contiguous = cyclic(Workers::split, size);
      Phase random = cyclic(Workers::split, size, pages4.data());
      contiguous.rotate = random.rotate = rotate;
      row("split", "contiguous", size, contiguous);
      row("split", "random_4k", size, random);
    }
  }
}

// Larger chunks at random, and the first parts of ranges that lie apart, as the keys that causal rows see do.
void chunk_read(const Bench& bench) {
  const auto row = [&](const char* layout, int chunk_kib, int size, const PageList& pages) {
    bench.row(layout, chunk_kib, size, kRounds);
    run_phases({cyclic(Workers::both_sides, size, pages.data())}, bench.buffer, bench.sms);
  };
  for (const int chunk_kib : {32, 128, 512}) {
    const PageList pages(scattered_pages(bench.homes.size(), static_cast<std::uint32_t>(chunk_kib / 4)));
    for (const int size : {22, 24, 26, 28, 30}) row("random", chunk_kib, size, pages);
  }
  for (const int ranges : {1, 2, 4, 8, 16})
    for (const int size : {20, 22, 24, 25, 26, 27, 28, 29, 30}) {
      const int apart = 32 / ranges;
      row("first_parts", apart * 1024, size, PageList(first_parts(ranges, apart * kMiB, size * kMiB)));
    }
}

// Walks of CTAs under a causal mask, longest first, in step: each wave reads the first parts of `ranges` ranges of 32
// MiB in all, which begin at `base`, from their last key down, `step_mib` less than the wave before, and writes
// `written_mib` of its own.
void shrinking_read(const Bench& bench) {
  const auto row = [&](int ranges, int step_mib, int written_mib, int base) {
    std::vector<PageList> lists;
    std::vector<Phase> phases;
    for (int size = 32; size >= 12; size -= step_mib) {
      std::vector<std::uint32_t> walk =
          backwards_side_by_side(first_parts(ranges, 32 / ranges * kMiB, size * kMiB), ranges);
      for (std::uint32_t& page : walk) page += static_cast<std::uint32_t>(base * kMiB / kPageBytes);
      lists.emplace_back(walk);
      phases.push_back(cyclic(Workers::both_sides, size, lists.back().data()));
      phases.back().rounds = 1;
      if (written_mib > 0)
        phases.push_back({.op = PhaseOp::write,
                          .bytes = written_mib * kMiB,
                          .base = (base + 64 + static_cast<std::int64_t>(size) * written_mib) * kMiB});
    }
    bench.row(ranges, step_mib, written_mib, base);
    run_phases(phases, bench.buffer, bench.sms);
  };
  for (const int ranges : {2, 4, 8})
    for (const int step_mib : {1, 2, 4})
      for (const int written_mib : {0, 4}) row(ranges, step_mib, written_mib, 0);
  for (const int base : {16, 64, 84, 132, 200, 328})
    for (const int ranges : {2, 4})
      for (const int step_mib : {1, 2}) row(ranges, step_mib, 4, base);
}

void strided_read(const Bench& bench) {
  const auto row = [&](int row_bytes, int row_stride, int size) {
    bench.row(row_bytes, row_stride, size, kRounds);
    Phase phase = cyclic(Workers::both_sides, size);
    phase.row_bytes = row_bytes;
    phase.row_stride = row_stride;
    run_phases({phase}, bench.buffer, bench.sms);
  };
  for (const int stride : {512, 1024, 2048, 4096, 8192, 16384})
    for (const int size : {16, 20, 24, 28, 32}) row(256, stride, size);
  for (const int stride : {2048, 4096, 8192})
    for (const int size : {16, 24, 32}) row(128, stride, size);
}

}  // namespace

std::vector<Experiment> read_experiments() {
  return {{"cyclic_read", "who,layout,mib,rounds,rotate", cyclic_read},
          {"chunk_read", "layout,chunk_kib,mib,rounds", chunk_read},
          {"shrinking_read", "ranges,step_mib,written_mib,base", shrinking_read},
          {"strided_read", "row_bytes,row_stride,mib,rounds", strided_read, 2304 * kMiB}};
}

}  // namespace attest::hardware
