#include <algorithm>

#include "experiments.h"
#include "page_lists.h"
#include "phases.h"

namespace attest::hardware {
namespace {

constexpr std::int64_t kOtherData = std::int64_t{512} << 20;  // of the buffer: what is read beside what is written

Phase write_phase(std::int64_t bytes) { return {.op = PhaseOp::write, .bytes = bytes}; }
Phase read_phase(std::int64_t bytes, Workers workers = Workers::split) {
  return {.op = PhaseOp::read, .workers = workers, .bytes = bytes, .base = kOtherData};
}
Phase wait_phase(int microseconds) { return {.op = PhaseOp::spin, .microseconds = microseconds}; }

void write_once(const Bench& bench) {
  const std::vector<int> sizes = {4, 8, 12, 16, 20, 24, 28, 32, 48, 64, 96};
  const auto row = [&](const char* how, int size, Phase phase) {
    bench.row(how, size);
    phase.bytes = size * kMiB;
    run_phases({phase}, bench.buffer, bench.sms);
  };
  const PageList scattered(scattered_pages(bench.homes.size(), 1));
  const PageList home0(pages_of_home(bench.homes, 0));
  const PageList home1(pages_of_home(bench.homes, 1));
  for (const int size : sizes) {
    row("contiguous", size, write_phase(0));
    row("contiguous_by_side0", size, {.op = PhaseOp::write, .workers = Workers::side0});
    row("contiguous_by_both", size, {.op = PhaseOp::write, .workers = Workers::both_sides});
    row("scattered_pages", size, {.op = PhaseOp::write, .pages = scattered.data()});
    row("pages_of_home0", size, {.op = PhaseOp::write, .pages = home0.data()});
    row("pages_of_home1", size, {.op = PhaseOp::write, .pages = home1.data()});
    row("home0_by_side0", size, {.op = PhaseOp::write, .workers = Workers::side0, .pages = home0.data()});
    row("home1_by_side0", size, {.op = PhaseOp::write, .workers = Workers::side0, .pages = home1.data()});
  }
}

void write_and_read(const Bench& bench) {
  for (const int written : {0, 8, 16, 24}) {
    for (const int read : {0, 8, 16, 24, 32, 40, 48, 64}) {
      bench.row("then_split", written, read);
      run_phases({write_phase(written * kMiB), read_phase(read * kMiB)}, bench.buffer, bench.sms);
    }
  }
  for (const int read : {8, 16, 24, 32, 48, 64}) {
    bench.row("then_both_sides", 8, read);
    run_phases({write_phase(8 * kMiB), read_phase(read * kMiB, Workers::both_sides)}, bench.buffer, bench.sms);
  }
  for (const int written : {8, 16, 24}) {
    for (const int read : {32, 64}) {
      bench.row("before", written, read);
      run_phases({read_phase(read * kMiB), write_phase(written * kMiB)}, bench.buffer, bench.sms);
    }
  }
  for (const int written : {8, 16, 32, 64}) {
    for (const int ratio : {1, 2, 4}) {
      bench.row("during", written, written * ratio);
      Phase phase = write_phase(written * kMiB);
      phase.reads_a_write = ratio;
      phase.read_base = kOtherData;
      run_phases({phase}, bench.buffer, bench.sms);
    }
  }
}

void write_wait(const Bench& bench) {
  for (const int written : {8, 16, 24}) {
    for (const int microseconds : {0, 100, 1000, 5000}) {
      bench.row(written, microseconds);
      run_phases({write_phase(written * kMiB), wait_phase(microseconds)}, bench.buffer, bench.sms);
    }
  }
}

void write_pattern(const Bench& bench) {
  struct Pattern {
    int row_bytes, row_stride;
  };
  const auto row = [&](Pattern p, int written) {
    bench.row(p.row_bytes, p.row_stride, written);
    Phase phase = write_phase(written * kMiB);
    phase.row_bytes = p.row_bytes;
    phase.row_stride = p.row_stride;
    run_phases({phase}, bench.buffer, bench.sms);
  };
  for (const Pattern p : {Pattern{128, 128}, {128, 256}, {128, 2048}, {128, 8192}, {256, 4096}, {256, 8192}})
    for (const int written : {8, 16, 32}) row(p, written);
  // part of each line: is the limit one of bytes or of lines?
  for (const int written : {2, 4, 6, 8, 10, 12, 16, 24, 32}) {
    for (const Pattern p : {Pattern{32, 128}, {64, 128}, {32, 64}, {96, 128}}) row(p, written);
  }
}

// Sectors of which only a part is written, and those whose other half follows when all first halves have been.
void write_parts(const Bench& bench) {
  constexpr int kStoreBytes = 16;  // half of a sector
  const auto phase_of = [](int row_bytes, int row_stride, int written) {
    Phase phase = write_phase(written * kMiB);
    phase.row_bytes = row_bytes;
    phase.row_stride = row_stride;
    return phase;
  };
  for (const int written : {4, 8, 16, 32, 64}) {
    for (const int stride : {32, 64, 128}) {
      const Phase first = phase_of(kStoreBytes, stride, written);
      Phase second = first;
      second.base = kStoreBytes;
      bench.row("half", kStoreBytes, stride, written);
      run_phases({first}, bench.buffer, bench.sms);
      bench.row("half then the other", kStoreBytes, stride, written);
      run_phases({first, second}, bench.buffer, bench.sms);
      bench.row("half read again", kStoreBytes, stride, written);
      Phase again = first;
      again.op = PhaseOp::read;
      run_phases({first, again}, bench.buffer, bench.sms);
    }
    for (const int gap : {kStoreBytes, 2 * kStoreBytes}) {
      bench.row("but a gap", 256, 256 + gap, written);
      run_phases({phase_of(256, 256 + gap, written)}, bench.buffer, bench.sms);
    }
  }
}

// Which lines are cleaned when there are too many dirty ones: 20 MiB, 20 MiB more, then the first or the last 20 again.
void write_again(const Bench& bench) {
  Phase first = write_phase(20 * kMiB);
  Phase second = first;
  second.base = first.bytes;
  Phase twice = first;  // the second time by SMs of another GPC
  twice.rounds = 2;
  twice.rotate = 37;
  const auto row = [&](const char* what, const std::vector<Phase>& phases) {
    bench.row(what);
    run_phases(phases, bench.buffer, bench.sms);
  };
  row("first second", {first, second});
  row("first second first", {first, second, first});
  row("first second second", {first, second, second});
  row("first first_by_other_sms", {twice});
}

void rewrite(const Bench& bench) {
  const auto row = [&](int written, int reads_a_write, int rotate) {
    constexpr int kRounds = 16;
    bench.row(written, kRounds, reads_a_write, rotate);
    Phase phase = write_phase(written * kMiB);
    phase.rounds = kRounds;
    phase.reads_a_write = reads_a_write;
    phase.read_base = kOtherData;
    phase.rotate = rotate;
    run_phases({phase}, bench.buffer, bench.sms);
  };
  for (const int written : {1, 2, 4, 8, 12, 16, 20, 24}) row(written, 0, 0);
  for (const int written : {2, 8, 16}) row(written, 0, 37);
  for (const int written : {2, 4, 8})
    for (const int reads_a_write : {1, 2, 4, 8}) row(written, reads_a_write, 0);
}

void spill(const Bench& bench) {
  for (const int shared : {8, 16, 24, 32, 48, 64}) {
    const auto row = [&](const char* how, int groups, int places, bool local) {
      SpillWalk walk{.shared_bytes = shared * kMiB, .groups = groups, .rounds = 16, .places = places, .local = local};
      walk.hold = static_cast<int>(walk.shared_bytes / groups / (32 * 1024));
      bench.row(how, shared, groups, places, walk.rounds);
      run_spill(walk, bench.buffer, kOtherData);
    };
    row("local", 8, 1, true);
    row("local", 2, 1, true);
    row("global", 8, 1, false);
    row("global", 8, 4, false);
    row("global", 8, 16, false);
  }
}

}  // namespace

std::vector<Experiment> write_experiments() {
  return {{"write_once", "how,written_mib", write_once},
          {"write_and_read", "reads,written_mib,read_mib", write_and_read},
          {"write_wait", "written_mib,wait_us", write_wait},
          {"write_pattern", "row_bytes,row_stride,written_mib", write_pattern, 2304 * kMiB},
          {"write_parts", "how,row_bytes,row_stride,written_mib", write_parts, 2304 * kMiB},
          {"write_again", "what", write_again},
          {"rewrite", "written_mib,rounds,reads_a_write,rotate", rewrite},
          {"spill", "how,shared_mib,groups,places,rounds", spill}};
}

}  // namespace attest::hardware
