// L1 as local memory sees it, against the benchmark `local` on an H200 (docs/results/h200-sm/local.csv).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "attest/simulator/report.h"
#include "attest/simulator/step_time.h"
#include "compiled_registers.h"
#include "measured_rows.h"
#include "queueing_network.h"
#include "spill_lives.h"

namespace attest {
namespace {

using Kind = SpillAccess::Kind;
using Row = MeasuredRow;

std::vector<Row> measured() { return measured_rows(ATTEST_H200_SM "/local.csv"); }

int whole(const Row& row, const char* name) { return std::stoi(row.at(name)); }
double counted(const Row& row, const char* name) { return std::stod(row.at(name)); }
double missing(const Row& row) {
  return 1 - counted(row, "l1tex__t_sectors_pipe_lsu_mem_local_op_ld_lookup_hit.sum") /
                 counted(row, "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum");
}
int lines_of(const Row& row) { return (256 * 1024 - whole(row, "launch__shared_mem_config_size")) / 128; }

/// Its frames of 4 KiB a thread, whose first words it goes through, or what the compiler spills, which ends where they
/// do; Nsight Compute ran it.
FramePlaces places_of(const std::string& order, int words) {
  constexpr int frame = 1024;
  return {MemoryMap(load_device("h200"), true, 4 * frame), order.starts_with("spilled") ? words : frame};
}

/// A turn of the benchmark, as local.h has its orders. Its loops are unrolled eight times, so that so many loads are
/// waited for together; what the compiler spills is used one by one.
SpillTrace turn_of(const std::string& order, int words, int lag) {
  constexpr int together = 8;
  SpillTrace turn;
  const auto access = [&](Kind kind, int word) { turn.accesses.push_back({turn.cycles++, kind, word}); };
  for (int i = 0; i < words; ++i) {
    if (order == "read" || order == "update" || order == "read_behind") access(Kind::load, i);
    if (order != "read" && order != "read_behind") access(Kind::store, i);
    if (lag > 0) access(Kind::load, (i - lag + words) % words);
  }
  for (int i = 0; i < words; ++i) {
    if (order == "forward") access(Kind::load, i);
    if (order == "reverse") access(Kind::load, words - 1 - i);
    if (order == "spilled_reverse") access(Kind::last_load, words - 1 - i);
  }
  const int a_turn = order == "update" || lag > 0 ? 2 * together : together;
  for (SpillAccess& a : turn.accesses)
    a.waited = order.starts_with("spilled") ? a.at + 1 : (a.at / a_turn + 1) * a_turn;
  return turn;
}

/// The part of its loads that miss where CTAs go through turn after turn, of `cycles` each: the mean of several SMs.
double missed_of(const SpillTrace& turn, int warps, int ctas, int lines, const FramePlaces& places, double cycles) {
  const SpillStep settles{SpillStep::Kind::whole, 0, 0}, counts{SpillStep::Kind::whole};
  SpillLife life(4, settles);
  life.insert(life.end(), 6, counts);
  std::vector<SpillingSm> sms;
  for (int sm = 0; sm < SampledSms::n; ++sm)
    sms.push_back(
        {SampledSms::apart * sm, std::vector<std::vector<SpillLife>>(static_cast<std::size_t>(ctas), {life})});
  SpillTraces traces;
  traces.whole = turn;
  SpillCycles times;
  times.key_tile = cycles;
  return spill_lives(traces, sms, warps, lines, places, times).whole.part;
}

// By order: mean error of the part of loads that miss.
TEST(L1Cache, MissesAsMeasured) {
  struct Errors {
    double sum = 0;
    int rows = 0;
  };
  std::map<std::string, Errors> errors;
  for (const Row& row : measured()) {
    const std::string& order = row.at("order");
    const int warps = whole(row, "warps"), ctas = whole(row, "ctas_an_sm"), words = whole(row, "words");
    if (row.at("in_step") != "1" || row.at("bytes") != "4" || row.at("beside") != "none" || whole(row, "turns") > 32)
      continue;
    if (ctas == 1 && row.at("smem_kib") == "228") continue;  // what they cost, below
    if (order == "write" || order == "chase" || order == "spilled_forward" || order == "spilled_behind") continue;
    const double predicted = missed_of(turn_of(order, words, whole(row, "lag")), warps, ctas, lines_of(row),
                                       places_of(order, words), counted(row, "cycles") / (counted(row, "turns") - 1));
    std::printf("%-16s %4d words %2d x %d warps %5d lines: %.3f of %.3f miss\n", order.c_str(), words, warps, ctas,
                lines_of(row), predicted, missing(row));
    errors[order].sum += std::abs(predicted - missing(row));
    ++errors[order].rows;
    const double share = static_cast<double>(words * warps * ctas) / lines_of(row);
    if (share < 0.6) {
      EXPECT_LT(predicted, 0.03);
      EXPECT_LT(missing(row), 0.03);
    }
  }
  const std::map<std::string, double> reached = {
      {"read", 0.025},         {"forward", 0.027},      {"reverse", 0.029},         {"update", 0.043},
      {"read_behind", 0.0135}, {"write_behind", 0.012}, {"spilled_reverse", 0.0495}};
  ASSERT_EQ(errors.size(), reached.size());
  for (const auto& [order, e] : errors) {
    std::printf("%-16s %3d rows, off by %.3f\n", order.c_str(), e.rows, e.sum / e.rows);
    EXPECT_LE(e.sum / e.rows, reached.at(order)) << order;
  }
}

/// The part of 6 words of 8 warps that is gone when it is loaded again, where each warp copies two rows of 256 bytes
/// `copies` times after each word, as on the benchmark's first SM. Where the rows begin is not known.
double gone_beside_rows(int copies, std::uint32_t row_bytes, int lines) {
  constexpr std::uint32_t other_bytes = 16 << 20, line_bytes = 128;
  constexpr int words = 6, warps = 8, turns = 32, places = 8;
  int gone = 0;
  for (int place = 0; place < places; ++place) {
    const Frames frames(places_of("read", words), 0, words, warps);
    std::vector<std::uint32_t> rows = frames.rows();
    const auto first_other = static_cast<int>(rows.size()) * L1Cache::lines_a_row;
    for (std::uint32_t row = 0; row < other_bytes / 512 + 1; ++row)
      rows.push_back(static_cast<std::uint32_t>(buffer_at_random(static_cast<std::uint64_t>(place)) / 512) + row);
    L1Cache cache(lines, rows);
    std::vector<std::uint32_t> copied;
    for (const std::uint32_t warp : {0, 1, 2, 3, 528, 529, 530, 531}) copied.push_back(warp * 512 * 97);
    for (int turn = 0; turn < turns; ++turn)
      for (int word = 0; word < words; ++word)
        for (int warp = 0; warp < warps; ++warp) {
          const bool held = cache.load(frames.line(warp, word), false);
          gone += turn > 0 && !held ? 1 : 0;
          for (int copy = 0; copy < copies; ++copy) {
            std::uint32_t& at = copied[static_cast<std::size_t>(warp)];
            at += 512 * 13;
            for (const std::uint32_t row : {2 * (at / 512), 2 * (at / 512) + 1})
              for (const std::uint32_t line : {0U, 1U})
                cache.load(first_other + static_cast<int>(row * row_bytes % other_bytes / line_bytes + line), false);
          }
        }
  }
  return static_cast<double>(gone) / ((turns - 1) * words * warps * places);
}

// Words that are loaded in each turn, beside rows of a tensor that are loaded or stored, however far apart they lie.
TEST(L1Cache, WhatPassesDrivesLinesOut) {
  double sum = 0;
  int rows = 0;
  for (const Row& row : measured()) {
    if (row.at("order") != "read" || row.at("beside") == "none") continue;
    const auto copies = static_cast<int>(counted(row, "lines_a_word") / 4);
    const double predicted =
        gone_beside_rows(copies, static_cast<std::uint32_t>(whole(row, "row_bytes")), lines_of(row));
    std::printf("%s, rows %5s bytes apart, %4d others: %.3f of %.3f gone\n", row.at("beside").c_str(),
                row.at("row_bytes").c_str(), 192 * copies, predicted, missing(row));
    sum += std::abs(predicted - missing(row)), ++rows;
    EXPECT_NEAR(predicted, missing(row), 0.122);
  }
  std::printf("%d rows, off by %.3f\n", rows, sum / rows);
  EXPECT_EQ(rows, 40);
  EXPECT_LE(sum / rows, 0.029);
}

TEST(L1Cache, WhatPassesBetweenTwoUsesDrivesOutMoreTheMoreItIs) {
  const auto gone = [](int words, int rows, int lines) {
    PassingTurns of_sm;
    for (std::int64_t first = 0; std::vector<PassingTile> & turn : of_sm) {
      turn = {{first, rows, 256, 4096}, {first + (32 << 20), rows, 256, 4096}};
      first += std::int64_t{rows} * 4096;
    }
    return driven_out(words, 8, {&of_sm, 1}, 1, lines, {MemoryMap(load_device("h200")), words});
  };
  EXPECT_EQ(driven_out(6, 8, {}, 1, 480, {MemoryMap(load_device("h200")), 6}), 0);
  EXPECT_EQ(gone(0, 64, 480), 0);
  EXPECT_EQ(gone(6, 1024, 480), 1);
  double before = 0;
  for (const int rows : {16, 64, 256}) {
    const double now = gone(6, rows, 480);
    EXPECT_GT(now, before);
    before = now;
  }
  EXPECT_LT(gone(6, 64, 992), gone(6, 64, 480));
}

// An order that is not known: registers that the compiler spills in three orders.
TEST(L1Cache, WhatDoesNotFitMissesInAnyOrder) {
  double sum = 0;
  int rows = 0;
  for (const Row& row : measured()) {
    if (row.at("order") != "spilled_reverse" && row.at("order") != "spilled_forward") continue;
    const double predicted =
        missing_part(whole(row, "words"), whole(row, "warps"), whole(row, "ctas_an_sm"), lines_of(row));
    sum += std::abs(predicted - missing(row)), ++rows;
    EXPECT_NEAR(predicted, missing(row), 0.21);
  }
  std::printf("%d rows, off by %.3f\n", rows, sum / rows);
  EXPECT_GE(rows, 42);
  EXPECT_LE(sum / rows, 0.05);
}

// Loads that are waited for together wait once, for as long as a chain of them takes for a miss beyond a hit; what a
// warp has to do before it waits is taken off, and what comes after a wait is as much later. A turn of eight hits has
// 224 cycles around them, as copy_paths.py has its control words, constants and jumps; of 1000 misses 16 follow each
// other without anything between.
TEST(L1Cache, AWarpWaitsForWhatItDoesNotHide) {
  double of_hits = 0, of_miss = 0;
  for (const Row& row : measured()) {
    if (row.at("order") != "chase" || row.at("sms") != "132") continue;
    const double turn = counted(row, "cycles") / (counted(row, "turns") - 1);
    missing(row) > 0.5 ? of_miss = turn / counted(row, "words") : of_hits = turn;
  }
  constexpr int hit = 29;
  EXPECT_NEAR((of_hits - 224) / 8, hit, 0.2);
  const double beyond_hit = of_miss - hit;
  const auto load = [](int at, int waited) { return SpillAccess{at, Kind::load, 0, waited}; };
  const auto waits = [](std::vector<SpillAccess> accesses, const std::vector<bool>& missed) {
    return waits_for({1000, std::move(accesses)}, missed);
  };
  EXPECT_NEAR(waits({load(0, hit)}, {true}), beyond_hit, 1);
  EXPECT_EQ(waits({load(0, hit)}, {false}), 0);
  EXPECT_NEAR(waits({load(0, hit), load(10, 10 + hit)}, {true, true}), beyond_hit + 10, 11);
  EXPECT_NEAR(waits({load(0, 100), load(10, 100)}, {true, true}), beyond_hit + 10 - (100 - hit), 1);
  EXPECT_NEAR(waits({load(0, 100), load(10, 100)}, {true, false}), beyond_hit - (100 - hit), 1);
  EXPECT_EQ(waits({load(0, 300)}, {true}), 0);
  EXPECT_NEAR(waits({load(0, hit), load(hit, 2 * hit)}, {true, true}), 2 * beyond_hit, 2);
  EXPECT_NEAR(waits({load(0, 900), load(10, 10 + hit), load(600, 950)}, {true, true, true}), beyond_hit, 1);
  EXPECT_NEAR(waits({load(990, 1000 + hit)}, {true}), beyond_hit - 10, 1);  // in the turn that follows
}

// All are stored, then loaded, beside other warps: L2 as a station that they share beside what one takes alone. Warps
// of the benchmark go through it together, so that they wait longer.
TEST(L1Cache, WarpsWaitForEachOtherInL2) {
  const DeviceSpec h200 = load_device("h200");
  double alone = 0;
  int rows = 0;
  for (const Row& row : measured()) {
    if (row.at("order") != "forward" || row.at("ctas_an_sm") != "1" || row.at("sms") != "132" ||
        row.at("bytes") != "4" || missing(row) < 0.9)
      continue;
    const double turns = counted(row, "turns"), warps = counted(row, "warps"), words = counted(row, "words");
    const double bytes = 128 * words, cycles = counted(row, "cycles") / (turns - 1);
    const double l2 = l2_busy_bytes(bytes, bytes, h200) / l2_bytes_per_clock(h200);
    if (warps == 1) alone = cycles / words;
    const double predicted = cycle_of_network({{}, {{l2}}, alone * words - l2}, {whole(row, "warps")});
    const double bound = std::max(alone * words, warps * l2);
    std::printf("%2.0f warps %3.0f words: %.0f of %.0f cycles, %.3f; without a queue %.3f\n", warps, words, predicted,
                cycles, predicted / cycles, bound / cycles);
    EXPECT_GT(predicted / cycles, 0.75);
    EXPECT_LT(predicted / cycles, 1.03);
    EXPECT_GE(predicted, bound * (1 - 1e-9));
    ++rows;
  }
  EXPECT_EQ(rows, 5);
}

// The least configuration for as many CTAs as an SM may hold, however many there are.
TEST(L1Cache, TheDriverSetsAsideWhatTheCtasOfAnSmMayTake) {
  const DeviceSpec h200 = load_device("h200");
  int rows = 0;
  for (const Row& row : measured()) {
    if (row.at("set_aside") == "1") continue;
    const int kib = whole(row, "smem_kib") / whole(row, "ctas_an_sm");
    const int ctas = std::min(228 / kib, 64 / whole(row, "warps"));
    EXPECT_EQ(smem_set_aside(std::int64_t{1024} * ctas * kib, h200), whole(row, "launch__shared_mem_config_size"));
    EXPECT_EQ(l1_lines(std::int64_t{1024} * (kib - 1), ctas, h200), lines_of(row));
    ++rows;
  }
  EXPECT_EQ(rows, 10);
}

// All SMs' misses and stores, 32 warps each: reads alone, writes alone, and as much of either.
TEST(L1Cache, WhatMissesTakesL2AsLongAsMeasured) {
  const DeviceSpec h200 = load_device("h200");
  int rows = 0;
  for (const Row& row : measured()) {
    if (row.at("sms") != "132" || row.at("warps") != "32" || row.at("set_aside") != "1" || row.at("words") != "48" ||
        row.at("bytes") != "4")
      continue;
    const double turns = counted(row, "turns"), timed = (turns - 1) / turns / counted(row, "sms");
    const double read = counted(row, "l1tex__m_xbar2l1tex_read_bytes.sum") * timed;
    const double written = row.at("order") == "read" ? 0 : counted(row, "l1tex__m_l1tex2xbar_write_bytes.sum") * timed;
    const double predicted = l2_busy_bytes(read, written, h200) / l2_bytes_per_clock(h200);
    const double ratio = predicted / counted(row, "cycles");
    std::printf("%-8s %.0f of %.0f cycles, %.3f\n", row.at("order").c_str(), predicted, counted(row, "cycles"), ratio);
    EXPECT_NEAR(ratio, 1, 0.05);
    ++rows;
  }
  EXPECT_EQ(rows, 3);
}

}  // namespace
}  // namespace attest
