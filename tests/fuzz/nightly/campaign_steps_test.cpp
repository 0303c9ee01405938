// How a campaign is divided into blocks.
#include <gtest/gtest.h>

#include <algorithm>

#include "nights.h"
#include "steps.h"

namespace attest {
namespace {

class Blocks : public InItsOwnFolder {
 protected:
  /// The blocks of a night of `seconds` on a kernel whose workers take `start` seconds to begin: how long each is and
  /// how many cover a case.
  std::pair<std::vector<double>, int> blocks(double seconds, double start) const {
    NightlyOptions options;
    options.seconds = seconds;
    const Facts facts;
    const History history(folder / "history.sqlite");
    Night night = night_of("2026-11-22");
    std::pair<std::vector<double>, int> result;
    for (double left = seconds; left > 0;) {
      const double block = block_seconds({options, facts, history, night, left}, "cpu");
      EXPECT_GT(block, 0);
      if (block <= 0) break;
      left -= block;
      if (night.steps.empty()) night.steps.push_back({"fuzz/cpu", 0, ""});
      night.steps.back().seconds += block;
      result.first.push_back(block);
      if (block <= start) continue;
      night.covered.push_back({"cpu", 0, {}});
      ++result.second;
    }
    return result;
  }
};

TEST_F(Blocks, AreATwentiethOfTheNight) {
  EXPECT_EQ(blocks(200, 0).first, std::vector<double>(20, 10));
  EXPECT_EQ(blocks(8, 0).first, std::vector<double>(8, 1));
  for (const double block : blocks(8 * 3600, 0).first) EXPECT_LE(block, 60);
}

TEST_F(Blocks, GrowUntilWorkersHaveTimeToStart) {
  const auto [lengths, covering] = blocks(40, 3);
  EXPECT_GE(covering, 3);
  EXPECT_EQ(lengths.front(), 2);
  EXPECT_LE(*std::max_element(lengths.begin(), lengths.end()), 16);
}

}  // namespace
}  // namespace attest
