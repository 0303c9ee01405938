#include "attest/simulator/in_parallel.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace attest {
namespace {

TEST(InParallel, EachIsDoneOnceAndToldOnce) {
  std::vector<int> times(1000, 0);
  std::vector<std::size_t> told;
  in_parallel(
      times.size(), [&](std::size_t i) { ++times[i]; },
      [&](std::size_t done, std::size_t of) {
        EXPECT_EQ(of, times.size());
        told.push_back(done);
      });
  EXPECT_EQ(times, std::vector<int>(1000, 1));
  ASSERT_EQ(told.size(), 1000u);
  for (std::size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i], i + 1);
  in_parallel(0, [](std::size_t) { FAIL(); });
}

TEST(InParallel, WhatTheFirstThatFailsThrowsIsThrown) {
  for (int run = 0; run < 20; ++run) {
    std::vector<int> times(100, 0);
    try {
      in_parallel(times.size(), [&](std::size_t i) {
        ++times[i];
        if (i == 30 || i == 31 || i == 99) throw std::runtime_error(std::to_string(i));
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "30");
    }
    for (int i = 0; i <= 30; ++i) EXPECT_EQ(times[static_cast<std::size_t>(i)], 1) << i;
  }
}

}  // namespace
}  // namespace attest
