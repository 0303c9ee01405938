// Counters on the GPU at hand, against what must be so of any call; without one, that it is said.
#include "attest/counters/counter_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attest/counters/device_call.h"
#include "attest/gpu/unfused.h"
#include "attest/problem/error.h"
#include "attest/sm80/sm80_forward.h"

namespace attest {
namespace {

using testing::HasSubstr;

constexpr const char* dram_read = "dram__bytes_read.sum";
constexpr const char* sm_write = "l1tex__m_l1tex2xbar_write_bytes.sum";
const std::vector<std::string> metrics = {dram_read, sm_write, "smsp__inst_executed.sum", "sm__cycles_elapsed.max"};

Case a_case(std::int64_t splits = 1) {
  Case c;
  Problem& p = c.problem;
  p.dtype = Dtype::bf16;
  p.nheads = p.nheads_k = 8;
  p.seqlen_q = splits == 1 ? 1024 : 1;
  p.seqlen_k = 1024;
  p.headdim = p.headdim_v = 128;
  c.num_splits = splits;
  return c;
}

class Counters : public testing::Test {
 protected:
  void SetUp() override {
    try {
      reader_ = std::make_unique<CounterReader>(metrics);
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  std::unique_ptr<CounterReader> reader_;
};

TEST_F(Counters, ColdCallsReadTheirInputsFromDramAndWarmOnesDoNot) {
  DeviceMemory memory;
  DeviceCall call(make_sm80_forward(), a_case(), memory);
  const double inputs = 3.0 * 8 * 1024 * 128 * 2;
  const auto cold = reader_->read(call, false), warm = reader_->read(call, true);
  ASSERT_EQ(cold.size(), 1u);
  EXPECT_THAT(cold[0].function, HasSubstr("forward"));
  EXPECT_NEAR(cold[0].values.at(dram_read) / inputs, 1, 0.1);
  EXPECT_LT(warm.at(0).values.at(dram_read), 0.1 * inputs);
  EXPECT_GE(cold[0].values.at(sm_write), inputs / 3);
  EXPECT_EQ(cold[0].values.at("smsp__inst_executed.sum"), warm[0].values.at("smsp__inst_executed.sum"));
  EXPECT_GT(cold[0].values.at("launch__registers_per_thread"), 32);
  EXPECT_GT(cold[0].values.at("sm__cycles_elapsed.max"), 1000);
}

TEST_F(Counters, EveryLaunchOfACallIsCounted) {
  DeviceMemory of_unfused, of_split;
  DeviceCall unfused(make_unfused(), a_case(), of_unfused), split(make_sm80_forward(), a_case(4), of_split);
  EXPECT_EQ(reader_->read(unfused, false).size(), 3u);
  EXPECT_EQ(reader_->read(split, false).size(), 2u);
}

TEST(CountersOfNothing, AnUnknownCounterIsRefused) {
  try {
    const CounterReader reader({"no__such_counter.sum"});
    FAIL() << "it was taken";
  } catch (const EnvironmentError& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
  }
}

}  // namespace
}  // namespace attest
