#include "device_features.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attest/plan/catalog.h"
#include "attest/problem/error.h"
#include "attest/simulator/plan_file.h"
#include "attest/simulator/report.h"

namespace attest {
namespace {

KernelPlan copying_by_tma() {
  KernelPlan plan;
  plan.headdim = plan.headdim_v = 64;
  plan.copy_kind = CopyKind::tma, plan.producer_warps = 4;
  return plan;
}

/// Of the case's head dimensions and elements, with the copies that its layout allows.
KernelPlan for_case(KernelPlan plan, const Case& c) {
  plan.headdim = static_cast<int>(c.problem.headdim);
  plan.headdim_v = static_cast<int>(c.problem.headdim_v);
  plan.element_bytes = bytes_of(c.problem.dtype);
  return with_layout(plan, c);
}

// On both sides of 9.0, by every device that travels in the program.
TEST(DeviceFeatures, TmaClustersAndWgmmaNeedHopper) {
  KernelPlan clustered = copying_by_tma(), wgmma = copying_by_tma();
  clustered.cluster = 2;
  wgmma.matrix_kind = MatrixKind::wgmma;
  for (const std::string& name : device_names()) {
    const DeviceSpec device = load_device(name);
    const bool hopper = device.compute_capability >= 90;
    EXPECT_EQ(hopper, name == "h100" || name == "h200" || name == "b200") << name;
    EXPECT_FALSE(lacking_feature(KernelPlan{}, device).has_value()) << name;
    for (const auto& [plan, field, reason] :
         {std::tuple{copying_by_tma(), "copy_kind", "no TMA"}, std::tuple{clustered, "copy_kind", "no TMA"},
          std::tuple{wgmma, "matrix_kind", "no wgmma"}}) {
      const auto lacking = lacking_feature(plan, device);
      ASSERT_EQ(lacking.has_value(), !hopper) << name << " " << field;
      if (!lacking) continue;
      EXPECT_EQ(lacking->field, field);
      EXPECT_EQ(lacking->reason, reason);
      EXPECT_THAT(lacking->limit, testing::HasSubstr("needs compute capability 9.0, and " + name + " has"));
    }
  }
}

TEST(DeviceFeatures, EachHasItsFirstComputeCapability) {
  DeviceSpec device = load_device("a100");
  KernelPlan eight_bit, async;
  eight_bit.element_bytes = 1;
  device.compute_capability = 89;
  EXPECT_FALSE(lacking_feature(eight_bit, device).has_value());
  device.compute_capability = 87;
  EXPECT_EQ(lacking_feature(eight_bit, device)->field, "element_bytes");
  device.compute_capability = 80;
  EXPECT_FALSE(lacking_feature(async, device).has_value());
  device.compute_capability = 75;
  EXPECT_EQ(lacking_feature(async, device)->value, "cp_async");
  async.copy_kind = CopyKind::synchronous;
  EXPECT_FALSE(lacking_feature(async, device).has_value());
  device.compute_capability = 120;  // TMA without wgmma
  EXPECT_FALSE(lacking_feature(copying_by_tma(), device).has_value());
  KernelPlan wgmma = copying_by_tma();
  wgmma.matrix_kind = MatrixKind::wgmma;
  EXPECT_THAT(lacking_feature(wgmma, device)->limit, testing::HasSubstr("wgmma_fma_per_clock_16bit"));
}

TEST(DeviceFeatures, AClusterOfMoreThanAllSmsIsRefused) {
  DeviceSpec device = load_device("h100");
  KernelPlan plan = copying_by_tma();
  plan.cluster = 16;
  device.num_sms = 16;
  EXPECT_FALSE(lacking_feature(plan, device).has_value());
  device.num_sms = 15;
  EXPECT_EQ(lacking_feature(plan, device)->reason, "too few SMs");
}

TEST(DeviceFeatures, PredictionsAndPlanFilesNameTheField) {
  Case c;
  c.problem.headdim = c.problem.headdim_v = 64;
  c.problem.seqlen_q = c.problem.seqlen_k = 256;
  const DeviceSpec a100 = load_device("a100");
  const auto said = [](auto&& f) {
    try {
      f();
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  for (const std::string& message :
       {said([&] { simulate(c, copying_by_tma(), a100); }), said([&] {
          DescribedPlan plan = load_plan("attest", c, a100);
          set_plan_fields(plan, std::vector<std::string>{"copy_kind=tma", "producer_warps=4"}, c, a100);
        })}) {
    EXPECT_THAT(message, testing::HasSubstr("copy_kind"));
    EXPECT_THAT(message, testing::HasSubstr("tma"));
    EXPECT_THAT(message, testing::HasSubstr("9.0, and a100 has 8.0"));
  }
}

// A tensor map's strides and base are multiples of 16 bytes; columns beyond the tensor's are within its boxes.
TEST(DeviceFeatures, TmaAddressesAlignedTensorsAlone) {
  const DeviceSpec device = load_device("h200");
  const auto limit = [&](Case c) {
    const auto lacking = plan_fault(for_case(copying_by_tma(), c), c, device);
    if (!lacking) return std::string();
    EXPECT_EQ(lacking->field, "copy_kind");
    EXPECT_EQ(lacking->value, "tma");
    EXPECT_EQ(lacking->reason, "unaligned for TMA");
    return lacking->limit;
  };
  Case c;
  for (const int headdim : {1, 3, 7, 33, 100, 255}) {
    c.problem.headdim = c.problem.headdim_v = headdim;
    EXPECT_EQ(limit(c), fmt::format("needs strides of multiples of 16 bytes, and headdim = {} with row_gap = 0 makes "
                                    "them {}",
                                    headdim, 2 * headdim));
    c.layout.row_gap = 8 - headdim % 8;
    EXPECT_EQ(limit(c), "") << headdim;
    c.layout.row_gap = 0;
  }
  c.problem.headdim = 64, c.problem.headdim_v = 63;
  EXPECT_THAT(limit(c), testing::HasSubstr("headdim_v = 63 with row_gap = 0 makes them 126"));
  c.problem.headdim_v = 72;
  EXPECT_EQ(limit(c), "");
  c.layout.base_offset = 4;
  EXPECT_EQ(limit(c), "needs tensors that begin at multiples of 16 bytes, and base_offset = 4 makes it 8");
  c.problem.dtype = Dtype::fp32;
  EXPECT_EQ(limit(c), "");
  c.layout.base_offset = 0, c.problem.headdim_v = 3;
  EXPECT_EQ(plan_fault(for_case(KernelPlan{}, c), c, device), std::nullopt);
}

// Each on both sides: with the case's own value there is no fault.
TEST(DeviceFeatures, PlansOfAnotherCaseAreFaults) {
  const DeviceSpec device = load_device("h200");
  Case c;
  c.problem.nheads = 6, c.problem.nheads_k = 2;
  const auto fault = [&](auto KernelPlan::*field, int value) {
    KernelPlan plan = for_case(KernelPlan{}, c);
    EXPECT_EQ(plan_fault(plan, c, device), std::nullopt);
    plan.*field = value;
    const auto found = plan_fault(plan, c, device);
    EXPECT_THROW(simulate(c, plan, device), InvalidInput);
    return found ? found->field + ": " + found->value + " " + found->limit : "none";
  };
  EXPECT_EQ(fault(&KernelPlan::headdim, 128), "headdim: 128 of the plan is not the case's 64");
  EXPECT_EQ(fault(&KernelPlan::headdim_v, 32), "headdim_v: 32 of the plan is not the case's 64");
  EXPECT_EQ(fault(&KernelPlan::element_bytes, 4), "element_bytes: 4 of the plan is not the case's 2");
  EXPECT_EQ(fault(&KernelPlan::packed_heads, 2), "packed_heads: 2 does not divide the 3 query heads of a key head");
  KernelPlan packed = for_case(KernelPlan{}, c);
  packed.packed_heads = 3;
  EXPECT_EQ(plan_fault(packed, c, device), std::nullopt);
  c.problem.sink = true;  // of the case alone
  EXPECT_EQ(plan_fault(packed, c, device)->field, "packed_heads");
}

TEST(DeviceFeatures, WhatTheModelOfCubeAndVectorCoresLacksIsTheCasesFault) {
  const DeviceSpec ascend = load_device("ascend910b"), h200 = load_device("h200");
  const std::pair<const char*, void (*)(Case&)> lacks[] = {
      {"varlen_q",
       [](Case& c) {
         c.problem.varlen_q = {64, 3};
       }},
      {"varlen_k",
       [](Case& c) {
         c.problem.varlen_k = {64, 3};
       }},
      {"seqused_k",
       [](Case& c) {
         c.problem.seqused_k = {64, 3};
       }},
      {"num_splits", [](Case& c) { c.num_splits = 2; }},
      {"bias", [](Case& c) { c.problem.bias = Bias::qk; }},
  };
  for (const auto& [field, ask] : lacks) {
    Case c;
    c.problem.batch = 2;
    c.problem.seqlen_q = c.problem.seqlen_k = 64;
    const KernelPlan plan = for_case(KernelPlan{}, c);
    EXPECT_EQ(plan_fault(plan, c, ascend), std::nullopt);
    ask(c);
    EXPECT_EQ(plan_fault(plan, c, h200), std::nullopt) << field;
    const auto fault = plan_fault(plan, c, ascend);
    ASSERT_TRUE(fault.has_value()) << field;
    EXPECT_EQ(fault->field, field);
    EXPECT_EQ(fault->case_field, field);
    EXPECT_THAT(fault->limit, testing::HasSubstr("which the model of ascend910b lacks"));
    // no plan's file is at fault
    const std::string file = to_json(DescribedPlan{"x", plan}).dump();
    try {
      (void)plan_from_json_text(file, "x.json", c, ascend);
      ADD_FAILURE() << field << " is taken";
    } catch (const InvalidInput& error) {
      EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("x.json")));
    }
  }
}

}  // namespace
}  // namespace attest
