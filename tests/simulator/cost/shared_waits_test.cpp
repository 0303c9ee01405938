#include "shared_waits.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "measured_rows.h"

namespace attest {
namespace {

SharedTurns turns(std::int64_t ctas, std::int64_t slots, std::int64_t across, std::int64_t down) {
  return {ctas, slots, across, down, 4, 1000, 2000, 3000, true, true, 300, 600, 0, 0};
}

TEST(SharedWaits, WhoIsAloneWaitsForDram) {
  SharedTurns t = turns(8, 8, 1, 1);
  EXPECT_NEAR(wait_of_turn(t), 900, 1e-9);
  t.b_in_dram = false;
  EXPECT_NEAR(wait_of_turn(t), 300 + 600 / 2.0, 1e-9);
  t.a_in_dram = false;
  EXPECT_NEAR(wait_of_turn(t), 300, 1e-9);
  t.slices = 0;
  EXPECT_EQ(wait_of_turn(t), 0);
}

TEST(SharedWaits, WhoBeginsTogetherWaitsForTheSameTurns) {
  EXPECT_NEAR(wait_of_turn(turns(8, 8, 8, 1)), 900, 1e-9);
  EXPECT_NEAR(wait_of_turn(turns(8, 8, 1, 8)), 900, 1e-9);
}

// One after the other: the first of those that share waits for DRAM.
TEST(SharedWaits, WhoComesLaterFindsThemInL2) {
  EXPECT_NEAR(wait_of_turn(turns(6, 1, 6, 1)), 300 + 600 * (1 / 6.0 + 1) / 2, 1e-9);        // A once, B each
  EXPECT_NEAR(wait_of_turn(turns(6, 1, 2, 3)), 300 + 600 * (3 / 6.0 + 2 / 6.0) / 2, 1e-9);  // 3 rows and 2 columns
  EXPECT_NEAR(wait_of_turn(turns(6, 1, 1, 3)), 300 + 600 * (1 + 2 / 6.0) / 2, 1e-9);        // of two heads
}

// CTAs that share rows from DRAM, as the benchmark has counted: it copies A alone.
TEST(SharedWaits, AsMeasured) {
  int rows = 0;
  for (const auto& row : measured_rows(ATTEST_H200_SM "/waits.csv")) {
    if (std::stoi(row.at("share")) == 1 || std::stoi(row.at("row_bytes")) != 64) continue;
    constexpr double l2 = 347;
    SharedTurns t{std::stoll(row.at("ctas")),
                  264,
                  std::stoll(row.at("share")),
                  1,
                  std::stoll(row.at("slices")),
                  std::stod(row.at("around")),
                  std::stod(row.at("between")) - 2 * l2,
                  std::stod(row.at("around")),
                  true,
                  false,
                  l2,
                  580,
                  178,
                  0.027};
    const double predicted = 2 * wait_of_turn(t) - l2, measured = std::stod(row.at("turn"));
    std::printf("%2s share: %.0f of %.0f cycles\n", row.at("share").c_str(), predicted, measured);
    EXPECT_NEAR(predicted / measured, 0.9, 0.1);
    ++rows;
  }
  EXPECT_EQ(rows, 3);
}

}  // namespace
}  // namespace attest
