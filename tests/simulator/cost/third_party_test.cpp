// The models against counters of kernels nobody here wrote: FlashAttention 2 and 3 and cuDNN on an H200 and an H100,
// cold caches, one row a call. Where the files come from is in simulator/measured/h200_more.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "attest/plan/catalog.h"
#include "attest/simulator/case_counts.h"
#include "attest/simulator/report.h"
#include "attest/simulator/step_time.h"
#include "measured/counted_calls.h"
#include "measured_rows.h"
#include "third_party_goals.h"

namespace attest {
namespace {

// The rows that were looked at while the model was made.
TEST(ThirdParty, EighteenCalls) { score("h200_third_party.csv"); }

// Counted later; docs/simulator.md says what was taken from them since they were first scored.
TEST(ThirdParty, ThirtySevenCallsMeasuredLater) { score("h200_more.csv"); }

// Shapes that no file had, counted once the models were as they were; h200_more.md says when.
TEST(ThirdParty, SixteenShapesCountedAfterTheModels) { score("h200_blind.csv"); }

// And sixteen drawn at random, then twenty when headdim 96 of the sixteen had been looked at.
TEST(ThirdParty, SixteenShapesDrawnAtRandom) { score("h200_unseen.csv"); }
TEST(ThirdParty, TwentyShapesDrawnAfterThem) { score("h200_drawn.csv"); }

// Twenty more, some of them with heads before rows, on another H200 and on the first H100 that anybody counted here; of
// FlashAttention 2 the eighteen that are not in splits.
TEST(ThirdParty, TwentyShapesOnAnotherH200) { score("h200_drawn_again.csv", "h200", 0.0041); }
TEST(ThirdParty, TwentyShapesOnAnH100) { score("h100_drawn.csv", "h100", 0.0041); }
TEST(ThirdParty, EighteenCallsOnAnH100) { score("h100_third_party.csv", "h100"); }

// Drawn and counted when its code had been read (c8ac251, but for stores under predicates, which headdims 40 and 104
// showed), of head dimensions most of which no file had.
TEST(ThirdParty, FlashAttention2CountedAfterItsCode) { score("h100_fa2_blind.csv", "h100", 0.0225); }

// Counted when sectors that are written in part were in the model, of head dimensions whose rows end within sectors.
TEST(ThirdParty, FlashAttention2OfRowsThatEndWithinSectors) { score("h100_fa2_heads.csv", "h100", 0.0225); }

// Long causal calls of 2 to 32 heads, counted when all of the above was in the model and before any was predicted. They
// read the more above what is predicted the worse rows so far apart fit (head_strides).
TEST(ThirdParty, LongCausalCallsOfFlashAttention2ByTheirHeads) { score("h200_fa2_strides.csv"); }
// The same and the twenty drawn ones, of which it is known where their tensors lay.
TEST(ThirdParty, FlashAttention2WhoseTensorsHaveKnownPlaces) {
  score("h200_fa2_placed.csv", "h200", 0.002, std::int64_t{1080} << 20);
}

// Drawn and counted when FlashAttention 2's leads had been measured anew and before any was predicted; of head
// dimensions 40 to 256.
TEST(ThirdParty, FlashAttention2DrawnAfterItsLeads) {
  score("h200_fa2_after.csv", "h200", 0.0225, std::int64_t{1080} << 20);
}

// Calls whose DRAM reads were furthest off, two to four times each on two other H200s: against the mean of each GPU's
// counts, and how far these are apart. Without those above 0.6 GB, whose walks would take this test minutes, and those
// whose tensors were moved.
TEST(ThirdParty, CallsFurthestOffOnOtherH200s) {
  const DeviceSpec h200 = load_device("h200");
  TileWalkOptions options;
  options.through_ncu = true;
  options.memory_begin = std::int64_t{1080} << 20;
  std::map<std::pair<std::string, std::string>, std::map<double, std::vector<double>>> reads;  // by GPU
  std::map<std::pair<std::string, std::string>, Case> cases;
  for (const CountedCall& row : counted_calls(ATTEST_MEASURED "/h200_chips.csv")) {
    if (row.at("dram__bytes_read.sum") > 6e8 || row.at("moved_mib") != 0) continue;
    const std::pair call{row.kernel, command_line(case_of(row))};
    reads[call][row.at("gpu")].push_back(row.at("dram__bytes_read.sum"));
    cases[call] = case_of(row);
  }
  double sum = 0, most = 0;
  int counted = 0;
  for (const auto& [call, gpus] : reads) {
    const auto& [kernel, command] = call;
    const double predicted =
        simulate(cases.at(call), plan_named(kernel, cases.at(call), h200), h200, kernel, options).dram_read_bytes;
    std::printf("%6s %s:", kernel.c_str(), command.c_str());
    for (const auto& [gpu, runs] : gpus) {
      const auto [least, greatest] = std::ranges::minmax(runs);
      const double mean = std::accumulate(runs.begin(), runs.end(), 0.0) / static_cast<double>(runs.size());
      const double error = std::abs(predicted / mean - 1);
      std::printf("  %.3f of %zu counts that are %.3f apart", predicted / mean, runs.size(), greatest / least - 1);
      sum += error, most = std::max(most, error), ++counted;
    }
    std::printf("\n");
  }
  std::printf("DRAM reads: %.4f / %.4f\n", sum / counted, most);
  EXPECT_EQ(counted, 25);
  EXPECT_LT(sum / counted, 0.029);
  EXPECT_LT(most, 0.091);
}

// Most with query heads that share key heads: docs/simulator.md, "Open". Two runs of a call read up to 6% more or less
// from DRAM, and its prediction is one run too, so what is held is the mean of both.
TEST(ThirdParty, CausalCallsOfFA3) {
  const std::vector<Ratios> rows = score("h200_fa3_causal.csv").at("fa3");
  std::map<std::pair<bool, std::string>, std::vector<Ratios>> calls;  // by whether heads share keys
  std::size_t at = 0;
  for (const CountedCall& row : counted_calls(ATTEST_MEASURED "/h200_fa3_causal.csv"))
    if (row.kernel == "fa3")  // others are compiled otherwise
      calls[{row.at("nheads_k") < row.at("nheads"), command_line(case_of(row))}].push_back(rows.at(at++));
  EXPECT_EQ(at, rows.size());
  std::size_t sharing = 0;
  for (const auto& [call, runs] : calls) {
    SCOPED_TRACE(call.second);
    sharing += call.first ? runs.size() : 0;
    ASSERT_EQ(runs.size(), 2U);
    const auto mean = [&r = runs](double Ratios::*ratio) { return (r.front().*ratio + r.back().*ratio) / 2; };
    EXPECT_NEAR(mean(&Ratios::dram_read), 1, call.first ? 0.107 : 0.08);
    EXPECT_NEAR(mean(&Ratios::l2_read), 1, 0.05);
    EXPECT_NEAR(mean(&Ratios::cycles), 1, 0.06);
  }
  EXPECT_EQ(sharing, 10U);
}

// Its plan was read off six of these 43 calls (headdim 64 and 128, full and causal, 96 and 256, of 4096 keys).
TEST(ThirdParty, CuDnn) { score("h200_cudnn.csv"); }

// Made to see which CTAs read a head together: not calls to be predicted, so what is reached stands below.
TEST(ThirdParty, WavesOfCuDnn) { score("h200_cudnn_waves.csv"); }

// Where its plan compares every score with the length its warps execute two instructions a score more than over whole
// tiles, else not. Of calls of 3000 keys and more, whose query tiles' beginnings and ends weigh little.
TEST(ThirdParty, CuDnnMasksEveryTileWhereItsPlanSaysSo) {
  const DeviceSpec h200 = load_device("h200");
  std::map<int, double> whole;  // instructions a warp and key tile, by columns: of the file's first row of each
  int masking = 0;
  for (const CountedCall& row : counted_calls(ATTEST_MEASURED "/h200_cudnn.csv")) {
    if (row.at("seqlen") < 3000) continue;
    const Case c = case_of(row);
    const KernelPlan plan = plan_named(row.kernel, c, h200);
    const Counts counts = count_case(c, plan);
    const double instructions =
        row.at("smsp__inst_executed.sum") / static_cast<double>(counts.key_tiles * plan.num_warps);
    const double more = instructions - whole.try_emplace(plan.columns(Operand::k), instructions).first->second;
    std::printf("%-70s %4.0f instructions a warp and key tile, %+4.0f\n", command_line(c).c_str(), instructions, more);
    const double scores = plan.rows_per_warp() * plan.tile_n / 32.0;
    EXPECT_NEAR(more, plan.masks_full_tiles ? 2 * scores : 0, plan.masks_full_tiles ? scores / 8 : scores)
        << command_line(c);
    masking += plan.masks_full_tiles;
  }
  EXPECT_EQ(masking, 2);
}

// docs/results/h200-sm.md: when the first query tiles of SMs of one clock end, over a key tile's time, which is how
// much longer one head's queries, a tile for each CTA, take of more keys. They do not begin together: what a key tile
// varies by is by how much more they are apart with 16 times the keys.
TEST(ThirdParty, CuDnnsCtasWalkApartAsTheyEnd) {
  std::map<int, std::map<double, double>> times;  // ns by headdim and keys
  for (const CountedCall& row : counted_calls(ATTEST_MEASURED "/h200_cudnn_waves.csv"))
    if (row.at("nheads") == 1 && row.at("seqlen_q") == 16896)
      times[static_cast<int>(row.at("headdim"))][row.at("seqlen")] = row.at("gpu__time_duration.sum");
  std::map<std::pair<int, int>, std::vector<double>> deviations;  // by headdim and keys
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/one_gpc.csv"))
    if (row.at("tile") == "0")
      deviations[{std::stoi(row.at("headdim")), std::stoi(row.at("keys"))}].push_back(
          std::stod(row.at("deviation_ns")));
  const auto variance = [&](int headdim, int keys) {
    std::vector<double>& ends = deviations.at({headdim, keys});
    std::sort(ends.begin(), ends.end());
    return std::pow((ends[(ends.size() - 1) / 2] + ends[ends.size() / 2]) / 2, 2);
  };
  const DeviceSpec h200 = load_device("h200");
  for (const auto& [headdim, keys] :
       {std::pair{64, 16384}, {64, 16392}, {96, 16384}, {128, 16384}, {128, 16392}, {192, 16384}, {256, 16384}}) {
    const auto& [few, short_time] = *times.at(headdim).begin();
    const auto& [many, long_time] = *times.at(headdim).rbegin();
    const double key_tile = (long_time - short_time) / ((many - few) / 128);
    const int fewer = keys - 15 * 1024;
    const double more_tiles = std::ceil(keys / 128.0) - std::ceil(fewer / 128.0);
    const double step = std::sqrt((variance(headdim, keys) - variance(headdim, fewer)) / more_tiles) / key_tile;
    Case c;
    c.problem.headdim = c.problem.headdim_v = headdim;
    c.problem.seqlen_q = c.problem.seqlen_k = keys;
    const KernelPlan plan = plan_named("cudnn", c, h200);
    std::printf("headdim %3d, %5d keys: %.1f thousandths, the plan has %d\n", headdim, keys, 1000 * step,
                plan.step_deviation);
    if (headdim == 256) {  // where what is read from DRAM keeps CTAs closer than one GPC's are that read from L2
      EXPECT_GT(1000 * step, 2 * plan.step_deviation);
      continue;
    }
    EXPECT_NEAR(1000 * step, plan.step_deviation, 2.2);
    EXPECT_EQ(step_deviation(plan, h200, 1), 1e-3 * plan.step_deviation);
  }
}

TEST(ThirdParty, CallsWithFewerKeyHeads) { score("h200_gqa.csv"); }

}  // namespace
}  // namespace attest
