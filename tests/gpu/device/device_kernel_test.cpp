// What a kernel does in device memory is judged as if it had been done in the host's.
#include "attest/gpu/device_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attest/gpu/forward_buffers.h"
#include "attest/problem/error.h"
#include "planted.h"
#include "writer.h"

namespace attest {
namespace {

using testing::HasSubstr;
using testing::Not;

// Why nothing can run on a GPU here; empty where it can.
const std::string& no_device() {
  static const std::string why = [] {
    try {
      open_device();
      return std::string();
    } catch (const EnvironmentError& error) {
      return std::string(error.what());
    }
  }();
  return why;
}

std::unique_ptr<Kernel> planted(Plant plant) { return make_device_kernel(std::make_unique<PlantedForward>(plant)); }

ForwardRun run(Plant plant, const Case& c) {
  const auto kernel = planted(plant);
  ForwardBuffers buffers;
  return buffers.run(*kernel, c, numbered_inputs(c.problem));
}

const Layout gaps{Layout::Order::bshd, 3, 1, 1};

class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (!no_device().empty()) GTEST_SKIP() << no_device();
  }
};

class EveryDeviceLayout : public testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Device, EveryDeviceLayout,
                         testing::Values(Layout{}, Layout{Layout::Order::bhsd, 0, 0, 0}, gaps,
                                         Layout{Layout::Order::bhsd, 8, 2, 8}, Layout{Layout::Order::bshd, 0, 1, 0}));

TEST_P(EveryDeviceLayout, WhatIsWrittenThereIsGathered) {
  if (!no_device().empty()) GTEST_SKIP() << no_device();
  const Case c = small_case(Dtype::fp16, GetParam());
  const ForwardRun ran = run(Plant::none, c);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t i = 0; i < 4; ++i)
      for (std::int64_t h = 0; h < 2; ++h) {
        for (std::int64_t d = 0; d < 5; ++d) EXPECT_EQ(ran.outputs.o.at(b, i, h, d), Writer::value(b, i, h, d));
        EXPECT_EQ(ran.outputs.lse->at(b, h, i, 0), static_cast<double>(b + 10 * h + 100 * i));
      }
  EXPECT_EQ(ran.outputs.unwritten_o, 0);
  EXPECT_EQ(ran.outputs.unwritten_lse, 0);
  EXPECT_EQ(ran.outputs.out_of_bounds, 0);
  EXPECT_TRUE(ran.report.hazards.empty());
  const auto offset = static_cast<std::uintptr_t>(c.layout.base_offset * 2);
  for (const TensorRef& t : {PlantedForward::last.q, PlantedForward::last.k, PlantedForward::last.o})
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data) % 256, offset % 256);
  EXPECT_EQ(PlantedForward::last.memory, nullptr);
}

TEST_F(OnDevice, WritesOutsideTheElementsAreCounted) {
  const Case c = small_case(Dtype::fp16, gaps);
  EXPECT_EQ(run(Plant::writes_gap, c).outputs.out_of_bounds, 2);
  EXPECT_GE(run(Plant::writes_before_o, c).outputs.out_of_bounds, 3) << "a byte of the pattern may be the same";
  EXPECT_EQ(run(Plant::writes_input, c).outputs.out_of_bounds, 2);
}

TEST_F(OnDevice, WritesBeyondTheMarginsAreAHazard) {
  const Case c = small_case(Dtype::fp16, {});
  const ForwardRun far = run(Plant::writes_far, c);
  EXPECT_EQ(far.outputs.out_of_bounds, 0);
  ASSERT_EQ(far.report.hazards.size(), 1u);
  EXPECT_EQ(far.report.hazards[0], "8 bytes of device memory changed beyond the tensors' margins");
  const ForwardRun behind = run(Plant::writes_workspace, c);
  ASSERT_EQ(behind.report.hazards.size(), 1u);
  EXPECT_EQ(behind.report.hazards[0], "4 bytes of device memory changed beyond the tensors' margins");
}

TEST_F(OnDevice, TheWorkspaceIsNanBeforeEveryRun) {
  const auto kernel = planted(Plant::reads_workspace);
  ForwardBuffers buffers;
  const Case c = small_case(Dtype::fp16, {});
  for (int again = 0; again < 2; ++again)
    for (const double value : buffers.run(*kernel, c, numbered_inputs(c.problem)).outputs.o.values) EXPECT_EQ(value, 1);
}

TEST_F(OnDevice, AnElementThatIsNotWrittenIsFound) {
  EXPECT_EQ(run(Plant::skips_an_element, small_case(Dtype::fp16, gaps)).outputs.unwritten_o, 1);
}

TEST_F(OnDevice, ALaunchThatFailsHasItsCauseAndHarmsNoOther) {
  const Case c = small_case(Dtype::fp16, {});
  const auto failing = planted(Plant::takes_too_much), right = planted(Plant::none);
  ForwardBuffers buffers;
  for (int again = 0; again < 2; ++again) {
    try {
      buffers.run(*failing, c, numbered_inputs(c.problem));
      FAIL() << "stale output";
    } catch (const KernelThrew& error) {
      EXPECT_THAT(error.what(), HasSubstr("planted: cudaErrorInvalidValue"));
    }
    EXPECT_EQ(buffers.run(*right, c, numbered_inputs(c.problem)).outputs.unwritten_o, 0);
  }
}

// In a process of its own, whose device is lost with it.
TEST_F(OnDevice, AnIllegalAddressLosesTheKernel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto crash = [] {
    const Case c = small_case(Dtype::fp16, {});
    const auto kernel = planted(Plant::crashes);
    const Problem& p = c.problem;
    ForwardBuffers buffers;
    std::string first;
    try {
      buffers.run(*kernel, c, numbered_inputs(p));
    } catch (const KernelThrew& error) {
      first = error.what();
    }
    try {
      buffers.run(*kernel, c, numbered_inputs(p));
    } catch (const KernelThrew& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::_Exit(first == error.what() ? 7 : 8);
    }
    std::_Exit(9);
  };
  EXPECT_EXIT(crash(), testing::ExitedWithCode(7), "the kernel: cudaErrorIllegalAddress");
}

TEST(NoDevice, IsToldInOneLineWithWhatToDo) {
  if (no_device().empty()) GTEST_SKIP() << "there is a GPU here";
  EXPECT_THROW(planted(Plant::none), EnvironmentError);
  EXPECT_THAT(no_device(), HasSubstr("--kernel cpu"));
  EXPECT_THAT(no_device(), Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace attest
