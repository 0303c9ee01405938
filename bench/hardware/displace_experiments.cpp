// What writes displace, and how evenly the lines of one home fill the sets: the two things that the simulator's L2 has
// wrong somewhere near the knee of a partition (docs/simulator.md, "L2 and DRAM").
#include <algorithm>

#include "experiments.h"
#include "page_lists.h"
#include "phases.h"

namespace attest::hardware {
namespace {

constexpr std::int64_t kResidentMib = 256;  // where the resident data begins; homes of the first 512 MiB are known

Phase phase_of(PhaseOp op, Workers workers, int size, const PageList& pages) {
  return {.op = op, .workers = workers, .bytes = size * kMiB, .pages = pages.data()};
}

// Data that both sides read, then writes, then the data again from its newest line to its oldest, so that what is gone
// displaces nothing that is still to be read: DRAM reads beyond the data are lines that home lost, crossings beyond the
// first half of it are copies that were lost.
void displaced_read(const Bench& bench) {
  std::vector<std::uint32_t> all(bench.homes.size());
  std::iota(all.begin(), all.end(), 0U);
  const PageList contiguous(all);
  const PageList home0(pages_of_home(bench.homes, 0));
  const PageList home1(pages_of_home(bench.homes, 1));
  struct Between {
    const char* what;
    PhaseOp op;
    Workers workers;
    const PageList& pages;
    int rounds;
  };
  const Between between[] = {{"write", PhaseOp::write, Workers::split, contiguous, 1},
                             {"write_twice", PhaseOp::write, Workers::split, contiguous, 2},
                             {"write_home_by_home", PhaseOp::write, Workers::side0, home0, 1},
                             {"write_home_by_other", PhaseOp::write, Workers::side0, home1, 1},
                             {"read", PhaseOp::read, Workers::split, contiguous, 1},
                             {"read_by_both", PhaseOp::read, Workers::both_sides, contiguous, 1}};
  for (const int resident : {16, 24, 28}) {
    std::vector<std::uint32_t> pages = first_parts(1, 0, resident * kMiB);
    for (std::uint32_t& page : pages) page += static_cast<std::uint32_t>(kResidentMib * kMiB / kPageBytes);
    const PageList there(pages);
    std::reverse(pages.begin(), pages.end());
    const PageList back(pages);
    for (const Between& b : between)
      for (const int size : {0, 2, 4, 8, 12, 16, 24}) {
        bench.row(b.what, resident, size, b.rounds);
        Phase other = phase_of(b.op, b.workers, size, b.pages);
        other.rounds = b.rounds;
        run_phases({phase_of(PhaseOp::read, Workers::both_sides, resident, there), other,
                    phase_of(PhaseOp::read, Workers::both_sides, resident, back)},
                   bench.buffer, bench.sms);
      }
  }
}

// Cyclic reads of one home's pages by its own side: of the first parts of ranges, and of a range that begins elsewhere.
void home_read(const Bench& bench) {
  constexpr int kRounds = 5;
  const auto row = [&](int ranges, int size, int begins, const std::vector<std::uint32_t>& pages) {
    bench.row(ranges, size, begins, kRounds);
    const PageList list(pages);
    Phase phase = phase_of(PhaseOp::read, Workers::side0, size, list);
    phase.rounds = kRounds;
    run_phases({phase}, bench.buffer, bench.sms);
  };
  const auto of_home0 = [&](int ranges, int size, int begins) {  // every other page of twice as many
    std::vector<std::uint32_t> pages;
    for (const std::uint32_t page : first_parts(ranges, 64 / ranges * kMiB, std::int64_t{2} * size * kMiB)) {
      const std::uint32_t at = page + static_cast<std::uint32_t>(begins * kMiB / kPageBytes);
      if (bench.homes[at] == 0) pages.push_back(at);
    }
    return pages;
  };
  for (const int ranges : {1, 2, 4, 8, 16, 32})
    for (const int size : {20, 22, 24, 26, 27, 28, 29, 30, 31}) row(ranges, size, 0, of_home0(ranges, size, 0));
  for (const int begins : {2, 4, 8, 16, 32, 84, 132})
    for (const int size : {26, 28, 29, 30, 31, 32}) row(1, size, begins, of_home0(1, size, begins));
}

}  // namespace

std::vector<Experiment> displace_experiments() {
  return {{"displaced_read", "between,resident_mib,mib,rounds", displaced_read},
          {"home_read", "ranges,mib,begins,rounds", home_read}};
}

}  // namespace attest::hardware
