#include "attest/problem/case.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace attest {
namespace {

TEST(CaseTest, JsonRoundTrip) {
  Case c;
  c.problem.nheads = 4;
  c.problem.nheads_k = 2;
  c.problem.causal = Causal::top_left;
  c.problem.window_left = 3;
  c.layout.seq_gap = 5;
  c.seed = 7;
  EXPECT_EQ(case_from_json_text(to_json(c).dump()), c);
}

}  // namespace
}  // namespace attest
