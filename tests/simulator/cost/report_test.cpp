#include "attest/simulator/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "attest/plan/catalog.h"
#include "attest/problem/error.h"
#include "attest/simulator/models.h"

namespace attest {
namespace {

Case llama() {
  Case c;
  c.problem = problem_of(load_model("llama-3-70b"), 8192);
  return c;
}

TEST(Report, ACallWithoutKeysStillTakesTheTimeOfItsStores) {
  Case c;
  c.problem.seqlen_q = 127, c.problem.seqlen_k = 0;
  for (const char* name : {"attest", "fa2", "fa3"}) {
    const DeviceSpec device = load_device("h200");
    const SimulationReport r = simulate(c, plan_named(name, c, device), device);
    EXPECT_GT(r.sm_write_bytes, 0) << name;
    EXPECT_GT(r.cycles, 0) << name;
  }
}

// Heads that share lines come a batch apart: cp.async brings whole lines for rows of a line and a half.
TEST(Report, WhatDramReadsWasAskedOfL2OrIsOfTheSameLines) {
  for (const std::int64_t headdim : {96, 128}) {
    Case c;
    c.problem = {100, 16, 8, 17, 1024, headdim, headdim, Dtype::fp16, {}, Causal::none, 100, -1};
    const DeviceSpec device = load_device("orin-agx");
    KernelPlan plan = plan_named("fa2", c, device);
    plan.longest_first = true;
    plan.tile_n = 64;
    const SimulationReport r = simulate(c, plan, device);
    EXPECT_GE(r.l2_read_bytes * (headdim == 96 ? 4.0 / 3 : 1), r.dram_read_bytes);
    EXPECT_GE(r.sm_read_bytes, r.l2_read_bytes);
    EXPECT_EQ(r.dram_read_bytes > r.l2_read_bytes, headdim == 96);
  }
}

TEST(Report, JsonHasTheContractsNames) {
  const DeviceSpec device = load_device("h100");
  const auto json = to_json(simulate(llama(), plan_named("attest", llama(), device), device, "attest"));
  EXPECT_EQ(json["schema"], "attest/predict/1");
  for (const char* name : {"dram_read_bytes", "dram_write_bytes", "compulsory_bytes", "sm_read_bytes", "sm_write_bytes",
                           "l2_read_bytes", "smem_wavefronts", "smem_wavefronts_ideal", "smem_bytes_per_cta",
                           "registers_per_thread", "spill_bytes_per_thread", "ctas_per_sm", "cycles", "time_us",
                           "flops", "exp_count", "kernels", "hbm_reduction_vs_unfused"}) {
    ASSERT_TRUE(json.contains(name)) << name;
    EXPECT_TRUE(json[name].is_number()) << name;
  }
  const std::vector<std::string> resources = {"tensor", "exp", "FMA", "ALU", "issue", "shared memory", "L2", "DRAM"};
  ASSERT_EQ(json["unfused"]["steps"].size(), 3U);
  for (const auto* terms : {&json, &json["unfused"], &json["unfused"]["steps"][0], &json["unfused"]["steps"][1],
                            &json["unfused"]["steps"][2]}) {
    EXPECT_GT((*terms)["cycles"], 0);
    EXPECT_TRUE((*terms)["bound"].is_string());
    std::vector<std::string> named;
    for (const auto& [resource, fraction] : (*terms)["utilisation"].items()) named.push_back(resource);
    EXPECT_EQ(named, resources);
  }
  EXPECT_TRUE(json["bound"].is_string());
  EXPECT_EQ(json["case"]["schema"], "attest/case/1");
  EXPECT_EQ(json["device"], "h100");
  EXPECT_EQ(json["estimated_fields"], 14);
  EXPECT_TRUE(json["hangs_on"].is_null());  // it was not asked for
}

TEST(Report, Llama3OnH100) {
  const DeviceSpec device = load_device("h100");
  const SimulationReport r = simulate(llama(), plan_named("attest", llama(), device), device, "attest");
  const double qo = 64.0 * 8192 * 128 * 2, kv = 2.0 * 8 * 8192 * 128 * 2, lse = 64.0 * 8192 * 4;
  EXPECT_DOUBLE_EQ(r.compulsory_bytes, 2 * qo + kv + lse);
  EXPECT_GE(r.dram_read_bytes, qo + kv);
  EXPECT_DOUBLE_EQ(r.flops, 64 * 4.0 * 128 * (8192.0 * 8193 / 2));
  EXPECT_EQ(r.exp_count, 64.0 * 64 * 65 * 128 * 64);  // query tiles see 2, 4, ..., 128 key tiles of 128 x 64
  EXPECT_GT(r.hbm_reduction_vs_unfused, 0.97);
  EXPECT_GT(r.unfused_speedup, 2);
  EXPECT_EQ(r.smem_wavefronts, r.smem_wavefronts_ideal);
  for (const Utilisation& u : r.utilisation) {
    EXPECT_GT(u.fraction, 0) << u.resource;
    EXPECT_LT(u.fraction, 1) << u.resource;
  }
}

// Each kind of access with its conflicts: rows as they are meet eight at a time at headdim 128, whoever reads them.
TEST(Report, WavefrontsByAccessAddUpAndNameTheirConflicts) {
  const DeviceSpec device = load_device("h100");
  for (const char* name : {"attest", "fa3"})
    for (const bool swizzled : {true, false}) {
      SCOPED_TRACE(testing::Message() << name << (swizzled ? ", swizzled" : ""));
      KernelPlan plan = plan_named(name, llama(), device);
      plan.swizzled = swizzled;
      const auto json = to_json(simulate(llama(), plan, device));
      double wavefronts = 0, ideal = 0;
      std::int64_t fragments = 0;
      for (const auto& access : json["smem_accesses"]) {
        if (access["instruction"] == "ldmatrix" || access["instruction"] == "wgmma") fragments = access["ways"];
        EXPECT_TRUE(!swizzled || access["wavefronts"] == access["wavefronts_ideal"]) << access;
        EXPECT_EQ(access["ways"] == 1, access["wavefronts"] == access["wavefronts_ideal"]) << access;
        EXPECT_EQ(access["in_smem_wavefronts"], access["instruction"] != "TMA");
        if (!access["in_smem_wavefronts"].get<bool>()) continue;
        wavefronts += access["wavefronts"].get<double>();
        ideal += access["wavefronts_ideal"].get<double>();
      }
      EXPECT_EQ(fragments, swizzled ? 1 : 8);
      EXPECT_EQ(json["smem_wavefronts"], wavefronts);
      EXPECT_EQ(json["smem_wavefronts_ideal"], ideal);
    }
}

TEST(Report, TheTableNamesWhatAReaderLooksFor) {
  const DeviceSpec device = load_device("h100");
  const std::string table = to_table(simulate(llama(), plan_named("attest", llama(), device), device, "attest"));
  for (const char* word : {"fused", "unfused", "DRAM read", "bound by", "NVIDIA H100", "64 heads on 8",
                           "than unfused, code aside", "fields of h100 are estimates"})
    EXPECT_NE(table.find(word), std::string::npos) << word << "\n" << table;
}

TEST(Report, EveryPlanOnEveryDeviceAndModel) {
  for (const std::string& name : device_names()) {
    const DeviceSpec device = load_device(name);
    for (const std::string& model : model_names())
      for (const NamedPlan& plan : named_plans) {
        Case c;
        c.problem = problem_of(load_model(model), 512);
        if (unpredicted(c)) {
          EXPECT_THROW(simulate(c, plan_named(plan.name, c, device), device, plan.name), InvalidInput) << model;
          continue;
        }
        const KernelPlan made = plan_named(plan.name, c, device);
        const bool lacks_wgmma = made.matrix_kind == MatrixKind::wgmma && device.wgmma_fma_per_clock_16bit == 0;
        const bool too_large = device.kind == DeviceKind::gpu && made.smem_bytes() > device.smem_bytes_per_cta_max;
        if (lacks_wgmma || too_large) {
          EXPECT_TRUE(lacks_wgmma || name == "mtt-s4000") << name << " " << plan.name << " " << model;
          EXPECT_THROW(simulate(c, made, device, plan.name), InvalidInput) << model;
          continue;
        }
        const SimulationReport r = simulate(c, made, device, plan.name);
        EXPECT_GE(r.dram_read_bytes + r.dram_write_bytes + r.walk.dirty_bytes_left, 0.95 * r.compulsory_bytes)
            << name << " " << model;
        EXPECT_GE(r.sm_read_bytes, r.l2_read_bytes);
        EXPECT_GT(r.time_us, 0);
      }
  }
}

// Whatever plan it is, with a name or from a file: what the case asks for reaches the models.
TEST(Report, EveryFeatureMovesAFigure) {
  const DeviceSpec device = load_device("h100");
  Case plain;
  plain.problem = {2, 4, 4, 1024, 1024, 64, 64, Dtype::bf16, {}, Causal::none, -1, -1};
  const SimulationReport base = simulate(plain, plan_named("attest", plain, device), device);
  const auto predict = [&](auto&& change) {
    Case c = plain;
    change(c);
    return simulate(c, plan_named("attest", plain, device), device);
  };
  const auto cycles = [](const SimulationReport& r) { return r.cycles; };
  EXPECT_GT(cycles(predict([](Case& c) { c.problem.softcap = 30; })), cycles(base));
  EXPECT_GT(cycles(predict([](Case& c) { c.problem.alibi = true; })), cycles(base));
  const SimulationReport bias = predict([](Case& c) { c.problem.bias = Bias::hqk; });
  EXPECT_GT(cycles(bias), cycles(base));
  // both batch entries read one bias; whether the second finds it in L2 is sampled
  EXPECT_NEAR((bias.dram_read_bytes - base.dram_read_bytes) / (4.0 * 4 * 1024 * 1024), 1, 0.05);
  EXPECT_DOUBLE_EQ(bias.sm_read_bytes - base.sm_read_bytes, 2 * 4.0 * 4 * 1024 * 1024);
  const SimulationReport documents = predict([](Case& c) { c.problem.documents = {256, 256, 256, 256}; });
  EXPECT_DOUBLE_EQ(documents.flops, base.flops / 4);
  EXPECT_LT(documents.sm_read_bytes, base.sm_read_bytes / 2);
  const SimulationReport lengths = predict([](Case& c) { c.problem.varlen_q = c.problem.varlen_k = {1024, 512}; });
  EXPECT_DOUBLE_EQ(lengths.flops, base.flops * 5 / 8);
  EXPECT_DOUBLE_EQ(lengths.compulsory_bytes, base.compulsory_bytes * 3 / 4);
  EXPECT_LT(predict([](Case& c) { c.problem.seqused_k = {1024, 100}; }).sm_read_bytes, base.sm_read_bytes);
  const SimulationReport prefix =
      predict([](Case& c) { c.problem.causal = Causal::bottom_right, c.problem.prefix = 512; });
  EXPECT_GT(prefix.flops, base.flops / 2);
  EXPECT_LT(prefix.flops, base.flops);
}

TEST(Report, SplitsOfADecodingStepShareItsTimeAndAddASecondKernel) {
  const DeviceSpec device = load_device("h100");
  Case c;
  c.problem = {1, 8, 8, 1, 65536, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
  const SimulationReport whole = simulate(c, plan_named("attest", c, device), device);
  c.num_splits = 16;
  const SimulationReport split = simulate(c, plan_named("attest", c, device), device);
  EXPECT_EQ(whole.kernels, 1);
  EXPECT_EQ(split.kernels, 2);
  EXPECT_LT(split.cycles, whole.cycles / 4);
  // every split reads the query and leaves O and LSE in fp32, which the second kernel reads
  constexpr double rows = 16 * 8;
  EXPECT_DOUBLE_EQ(split.walk.partial_bytes, rows * 4 * 128);
  EXPECT_DOUBLE_EQ(split.sm_read_bytes - whole.sm_read_bytes, 15.0 * 8 * 128 * 2 + rows * 4 * 129);
  EXPECT_DOUBLE_EQ(split.sm_write_bytes - split.spill_store_bytes,
                   whole.sm_write_bytes - whole.spill_store_bytes + rows * (4 * 128 + 32));  // a sector a row's LSE
  c.problem.headdim = c.problem.headdim_v = 100;                                             // rows of whole sectors
  EXPECT_DOUBLE_EQ(simulate(c, plan_named("attest", c, device), device).walk.partial_bytes, rows * 4 * 104);
}

TEST(Report, DegenerateShapes) {
  const DeviceSpec device = load_device("a100");
  for (const auto& [sq, sk] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 5}, {5, 0}, {1, 1}, {1, 100000}}) {
    Case c;
    c.problem.seqlen_q = sq, c.problem.seqlen_k = sk;
    const SimulationReport r = simulate(c, plan_named("attest", c, device), device, "attest");
    EXPECT_TRUE(std::isfinite(r.hbm_reduction_vs_unfused));
    EXPECT_TRUE(std::isfinite(r.time_us));
    EXPECT_FALSE(to_table(r).empty());
    EXPECT_FALSE(to_json(r).dump().empty());
    EXPECT_EQ(r.flops, 4.0 * 64 * static_cast<double>(sq * sk));
  }
}

TEST(Report, RefusesWhatDoesNotFit) {
  const Case c = llama();
  const DeviceSpec device = load_device("h100");
  EXPECT_THROW(plan_named("fa9", c, device), InvalidInput);
  KernelPlan plan = plan_named("attest", c, device);
  plan.tile_m = 100;
  EXPECT_THROW(simulate(c, plan, device), InvalidInput);
  plan = plan_named("attest", c, device);
  plan.headdim = 64;
  EXPECT_THROW(simulate(c, plan, device), InvalidInput);
  plan = plan_named("attest", c, device);
  plan.stages = 4, plan.tile_n = 512;
  EXPECT_THROW(simulate(c, plan, device), InvalidInput);
}

// Followed for minutes otherwise: 4096 SMs with 16 CTAs of four warps are 65536.
TEST(Report, RefusesMoreCtasAtATimeThanItFollows) {
  const Case c = llama();
  DeviceSpec device = load_device("h100");
  device.num_sms = 4096;
  device.registers_per_sm = 1 << 24, device.smem_bytes_per_sm = 1 << 26;
  try {
    simulate(c, plan_named("attest", c, device), device);
    ADD_FAILURE() << "predicted";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(),
                 "num_sms: 4096 with 16 CTAs of this plan an SM makes 65536 CTAs at a time, must not exceed 16384");
  }
  device.max_ctas_per_sm = 4;
  EXPECT_EQ(simulate(c, plan_named("attest", c, device), device).ctas_per_sm, 4);
}

TEST(Report, AskingTwiceGivesTheSame) {
  const DeviceSpec device = load_device("rtx4090");
  const KernelPlan plan = plan_named("fa2", llama(), device);
  EXPECT_EQ(to_json(simulate(llama(), plan, device)), to_json(simulate(llama(), plan, device)));
}

TEST(Report, ATileCounterCostsASectorEachWayAndTile) {
  Case c;
  c.problem = {1, 4, 4, 2048, 2048, 128, 128, Dtype::bf16, {}, Causal::bottom_right, -1, -1};
  const DeviceSpec device = load_device("h200");
  KernelPlan plan = plan_named("fa3", c, device);
  ASSERT_EQ(plan.persistence, Persistence::dynamic);
  const SimulationReport counted = simulate(c, plan, device);
  plan.persistence = Persistence::static_stride;
  const SimulationReport fixed = simulate(c, plan, device);
  EXPECT_EQ(counted.sm_read_bytes - fixed.sm_read_bytes, 4 * 16 * 32);
  EXPECT_EQ(counted.sm_write_bytes - fixed.sm_write_bytes, 4 * 16 * 32);
}

// A causal mask that leaves most query tiles no key takes no longer than none, for any kernel.
TEST(Report, QueryTilesWithoutKeysAreInNoKeyTilesWay) {
  const DeviceSpec h200 = load_device("h200");
  for (const char* name : {"attest", "fa2", "fa3", "cudnn"})
    for (const std::int64_t keys : {64, 65, 128, 300}) {
      Case c;
      c.problem = {1, 8, 8, 2048, keys, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
      const double all = simulate(c, plan_named(name, c, h200), h200, name).cycles;
      c.problem.causal = Causal::bottom_right;
      EXPECT_LE(simulate(c, plan_named(name, c, h200), h200, name).cycles, 1.1 * all) << name << " " << keys;
    }
}

// CTAs that are alone on their SM wait for no code that they walk apart under a mask.
TEST(Report, CtasAloneDoNotWaitForTheirCode) {
  const DeviceSpec h200 = load_device("h200");
  for (const std::int64_t tokens : {129, 255, 513}) {
    Case c;
    c.problem = {1, 1, 1, tokens, tokens, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
    const double all = simulate(c, plan_named("fa2", c, h200), h200, "fa2").cycles;
    c.problem.causal = Causal::bottom_right;
    EXPECT_LE(simulate(c, plan_named("fa2", c, h200), h200, "fa2").cycles, 1.1 * all) << tokens;
  }
}

// A cold call of 45,824 bytes of code reads them, and is compared with unfused kernels, whose code is not known,
// without them; a warm one finds them in L2, and so does not one that turns L2 over.
TEST(Report, ColdCallsReadTheirCode) {
  const DeviceSpec h100 = load_device("h100");
  const auto read = [&](std::int64_t nheads, bool warm) {
    Case c;
    c.problem.nheads = c.problem.nheads_k = nheads;
    c.problem.seqlen_q = c.problem.seqlen_k = 512;
    TileWalkOptions options;
    options.warm = warm;
    return simulate(c, plan_named("attest", c, h100), h100, "attest", options);
  };
  const SimulationReport small = read(1, false);
  EXPECT_EQ(small.code_read_bytes, 45'824);
  EXPECT_EQ(small.dram_read_bytes, 3 * 512 * 64 * 2 + small.code_read_bytes);
  EXPECT_EQ(small.hbm_reduction_vs_unfused, 0);
  EXPECT_EQ(read(1, true).code_read_bytes, 0);
  EXPECT_EQ(read(256, true).code_read_bytes, 45'824);
}

}  // namespace
}  // namespace attest
