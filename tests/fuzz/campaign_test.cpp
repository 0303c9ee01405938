#include "attest/fuzz/campaign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "attest/fuzz/commands.h"
#include "attest/fuzz/kernels.h"
#include "attest/problem/error.h"
#include "naive_kernel.h"

namespace attest {
namespace {

KernelFactory naive(Fault fault = Fault::none) {
  return [fault] { return std::make_unique<NaiveKernel>(fault); };
}

CampaignOptions small(std::uint64_t cases) {
  CampaignOptions options;
  options.kernel = "naive";
  options.cases = cases;
  options.budget = {64, 1 << 16, 2048};
  return options;
}

// Notes which cases it was given.
class Listener : public NaiveKernel {
 public:
  Listener(std::set<std::string>& seen, std::mutex& mutex) : seen_(seen), mutex_(mutex) {}
  RunReport run(const Case& c, const ForwardArgs& args) override {
    {
      const std::lock_guard lock(mutex_);
      seen_.insert(command_line(c));
    }
    return NaiveKernel::run(c, args);
  }

 private:
  std::set<std::string>& seen_;
  std::mutex& mutex_;
};

TEST(Campaign, AccusesTheRightKernelOfNothing) {
  const CampaignOptions options = small(3000);
  const CampaignResult result = run_campaign(naive(), options);
  EXPECT_EQ(result.failed, 0u) << to_text(options, result);
  EXPECT_GT(result.passed, 2300u);  // it has no backward
  EXPECT_EQ(result.passed + result.unsupported, 3000u);
  EXPECT_EQ(result.cases, 3000u);
  EXPECT_EQ(result.first_uncovered_k, 3000u);
  EXPECT_EQ(result.census.cases(), 3000);
  EXPECT_EQ(result.stopped, Stopped::finished);
  for (const Property& property : properties())
    EXPECT_GT(result.by_property.at(std::string(property.name)).total(), 0u);
}

TEST(Campaign, AccusesTheCpuKernelOfNothing) {
  CampaignOptions options;
  options.cases = 1500;
  options.seed = 77;
  const CampaignResult result = run_campaign([] { return make_kernel("cpu"); }, options);
  EXPECT_EQ(result.failed, 0u) << to_text(options, result);
  EXPECT_GT(result.passed, 1400u);  // it has no backward of 8-bit inputs
  EXPECT_EQ(result.passed + result.unsupported, 1500u);
}

class EveryFault : public testing::TestWithParam<FaultName> {};
INSTANTIATE_TEST_SUITE_P(Campaign, EveryFault, testing::ValuesIn([] {
                           std::vector<FaultName> faults;
                           for (const FaultName& f : all_faults)
                             if (f.fault != Fault::none) faults.push_back(f);
                           return faults;
                         }()),
                         [](const auto& p) { return std::string(p.param.name); });

TEST_P(EveryFault, IsFoundAndMadeSmall) {
  CampaignOptions options = small(20'000);
  options.max_failed = 1;
  options.budget.max_work = 1 << 18;
  const CampaignResult result = run_campaign(naive(GetParam().fault), options);
  ASSERT_FALSE(result.failures.empty());
  const bool remembers = GetParam().fault == Fault::stale_scale || GetParam().fault == Fault::alternates;
  for (const Failure& failure : result.failures) {
    EXPECT_NE(failure.verdict.status, Status::passed);
    EXPECT_GT(failure.verdict.error_over_budget, 1);
    const auto extents = [](const Problem& p) { return p.batch * p.nheads * p.seqlen_q * p.seqlen_k * p.headdim; };
    EXPECT_LE(extents(failure.minimal.problem), extents(failure.found.problem));
    EXPECT_THAT(failure.repro, testing::StartsWith("attest check --kernel naive --property " + failure.property));
    EXPECT_THAT(failure.repro, testing::EndsWith(command_line(failure.minimal)));
    // The failing case fails again, by itself, unless the calls before it were what was wrong.
    if (remembers) continue;
    NaiveKernel kernel(GetParam().fault);
    ForwardBuffers buffers;
    Trial trial(kernel, buffers, failure.minimal);
    EXPECT_EQ(judge(property_named(failure.property), trial).status, failure.verdict.status) << failure.repro;
  }
  const Failure& first = result.failures.front();
  std::cout << "  " << first.property << " (" << to_string(first.verdict.status) << ") at case " << first.k << " after "
            << first.shrink_runs << " runs: " << command_line(first.minimal) << "\n";
  const bool needs_many_keys = GetParam().fault == Fault::throws || GetParam().fault == Fault::hazard ||
                               GetParam().fault == Fault::drops_one_key_of_many;
  const bool statistical = GetParam().fault == Fault::p_in_bf16 || GetParam().fault == Fault::p_truncated ||
                           GetParam().fault == Fault::scale_one_percent;
  if (!statistical && !remembers) {
    EXPECT_LE(work_of(first.minimal.problem), needs_many_keys ? 400 : 64) << command_line(first.minimal);
  }
}

TEST(Campaign, TheResultDoesNotDependOnTheThreads) {
  CampaignOptions options = small(600);
  options.max_failed = 1'000'000;
  options.threads = 1;
  const CampaignResult one = run_campaign(naive(Fault::window_right_short), options);
  options.threads = 3;
  const CampaignResult three = run_campaign(naive(Fault::window_right_short), options);
  EXPECT_EQ(one.failed, three.failed);
  EXPECT_GT(one.failed, 0u);
  EXPECT_EQ(one.statuses, three.statuses);
  EXPECT_EQ(one.by_property, three.by_property);
  EXPECT_EQ(one.coverage.to_json(), three.coverage.to_json());
  EXPECT_EQ(one.census.to_json(), three.census.to_json());
  ASSERT_EQ(one.failures.size(), three.failures.size());
  for (std::size_t i = 0; i < one.failures.size(); ++i) {
    EXPECT_EQ(one.failures[i].k, three.failures[i].k);
    EXPECT_EQ(one.failures[i].property, three.failures[i].property);
    EXPECT_EQ(one.failures[i].found, three.failures[i].found);
    EXPECT_EQ(one.failures[i].seen, three.failures[i].seen);
  }
}

// The same whoever judges: this process, or any number of workers.
TEST(Campaign, WorkersFindWhatThisProcessFinds) {
  CampaignOptions options = small(300);
  options.max_failed = 1'000'000;
  options.kernel = "mutant:24-window-right-exclusive";
  const CampaignResult here = run_campaign([&] { return make_kernel(options.kernel); }, options);
  EXPECT_GT(here.failed, 0u);
  for (const int workers : {1, 3}) {
    options.threads = workers;
    const CampaignResult there = run_campaign(WorkerProgram{BROKEN_WORKER, {}}, options);
    nlohmann::ordered_json a = to_json(options, here), b = to_json(options, there);
    for (nlohmann::ordered_json* json : {&a, &b})
      for (const char* field : {"seconds", "cases_per_second", "threads"}) json->erase(field);
    EXPECT_EQ(a, b);
  }
}

TEST(Campaign, ALimitOfFailuresCutsAtTheSameCaseWhoeverJudges) {
  CampaignOptions options = small(10'000);
  options.max_failed = 7;
  options.shard_count = 2;
  options.shard_index = 1;
  options.kernel = "mutant:24-window-right-exclusive";
  options.shrink.max_runs = 0;
  options.threads = 1;
  const CampaignResult here = run_campaign([&] { return make_kernel(options.kernel); }, options);
  EXPECT_EQ(here.failed, 7u);
  EXPECT_EQ(here.stopped, Stopped::failures);
  EXPECT_EQ(here.first_uncovered_k, 2 * here.cases + 1);
  options.threads = 3;
  const CampaignResult there = run_campaign(WorkerProgram{BROKEN_WORKER, {}}, options);
  EXPECT_EQ(there.statuses, here.statuses);
  EXPECT_EQ(there.first_uncovered_k, here.first_uncovered_k);
  EXPECT_EQ(there.by_property, here.by_property);
}

TEST(Campaign, ShardsPartitionTheCases) {
  std::mutex mutex;
  std::set<std::string> whole, parts;
  CampaignOptions options = small(101);
  run_campaign([&] { return std::make_unique<Listener>(whole, mutex); }, options);
  std::uint64_t cases = 0;
  options.shard_count = 3;
  for (options.shard_index = 0; options.shard_index < 3; ++options.shard_index) {
    const CampaignResult result = run_campaign([&] { return std::make_unique<Listener>(parts, mutex); }, options);
    cases += result.cases;
    EXPECT_GE(result.first_uncovered_k, 101u);
    EXPECT_LT(result.first_uncovered_k, 101u + 3u);
  }
  EXPECT_EQ(cases, 101u);
  EXPECT_EQ(parts, whole);
}

TEST(Campaign, MoreShardsThanCasesLeavesSomeWithout) {
  CampaignOptions options = small(2);
  options.shard_count = 5;
  options.shard_index = 4;
  EXPECT_EQ(run_campaign(naive(), options).cases, 0u);
}

TEST(Campaign, TimeIsKept) {
  CampaignOptions options = small(100'000'000);
  options.time_seconds = 0.5;
  const auto start = std::chrono::steady_clock::now();
  const CampaignResult result = run_campaign(naive(), options);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5);
  EXPECT_EQ(result.stopped, Stopped::time);
  EXPECT_GT(result.cases, 0u);
  EXPECT_EQ(result.first_uncovered_k, result.cases);
}

TEST(Campaign, AWhollyWrongKernelEndsSoon) {
  CampaignOptions options = small(1'000'000);
  options.max_failed = 20;
  options.shrink.max_seconds = 1;
  const CampaignResult result = run_campaign(naive(Fault::lse_base_2), options);
  EXPECT_EQ(result.stopped, Stopped::failures);
  EXPECT_EQ(result.failed, 20u);
  EXPECT_EQ(result.first_uncovered_k, result.cases);
  EXPECT_LE(result.failures.size(), 10u);
}

TEST(Campaign, StopsOnRequestAndKeepsWhatItHas) {
  CampaignOptions options = small(100'000'000);
  CampaignResult result;
  std::jthread campaign([&] { result = run_campaign(naive(), options); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  request_stop();
  campaign.join();
  EXPECT_EQ(result.stopped, Stopped::interrupted);
  EXPECT_EQ(result.passed + result.unsupported, result.cases);
  EXPECT_EQ(result.first_uncovered_k, result.cases);
}

TEST(Campaign, UnsupportedCasesAreCountedApart) {
  class Narrow : public NaiveKernel {
    std::optional<std::string> unsupported(const Case& c) const override {
      if (c.problem.dtype == Dtype::fp32) return "fp32";
      return std::nullopt;
    }
  };
  const CampaignResult result = run_campaign([] { return std::make_unique<Narrow>(); }, small(300));
  EXPECT_EQ(result.unsupported, static_cast<std::uint64_t>(result.census.count("fp32")));
  EXPECT_GT(result.unsupported, 50u);
  EXPECT_EQ(result.passed + result.unsupported, 300u);
}

TEST(Campaign, JsonHasWhatScriptsReadAndTheCaseReadsBack) {
  CampaignOptions options = small(5000);
  options.max_failed = 3;
  const CampaignResult result = run_campaign(naive(Fault::head_modulo), options);
  const nlohmann::ordered_json json = to_json(options, result);
  EXPECT_EQ(json.begin().key(), "schema");
  EXPECT_EQ(json["schema"], "attest/fuzz/1");
  for (const char* field : {"cases", "passed", "failed", "unsupported", "seed", "seconds", "failures",
                            "generator_version", "shard", "first_uncovered_k", "distribution"})
    EXPECT_TRUE(json.contains(field)) << field;
  ASSERT_FALSE(json["failures"].empty());
  for (const auto& failure : json["failures"]) {
    for (const char* field : {"case", "property", "channel", "error_over_budget", "repro"})
      EXPECT_TRUE(failure.contains(field)) << field;
    EXPECT_NO_THROW(case_from_json(failure["case"]));
  }
  EXPECT_EQ(case_from_json(json["failures"][0]["case"]), result.failures[0].minimal);
}

TEST(Campaign, OptionsAreRefusedByName) {
  const auto field = [](auto change) -> std::string {
    CampaignOptions options;
    change(options);
    try {
      options.validate();
    } catch (const InvalidInput& error) {
      return error.field();
    }
    return "none";
  };
  EXPECT_EQ(field([](CampaignOptions&) {}), "none");
  EXPECT_EQ(field([](CampaignOptions& o) { o.cases = 0; }), "cases");
  EXPECT_EQ(field([](CampaignOptions& o) { o.time_seconds = -1; }), "time");
  EXPECT_EQ(field([](CampaignOptions& o) { o.time_seconds = std::nan(""); }), "time");
  EXPECT_EQ(field([](CampaignOptions& o) { o.shard_count = 0; }), "shard");
  EXPECT_EQ(field([](CampaignOptions& o) { o.shard_index = 1; }), "shard");
  EXPECT_EQ(field([](CampaignOptions& o) { o.threads = -1; }), "threads");
  EXPECT_EQ(field([](CampaignOptions& o) { o.hang_seconds = -1; }), "timeout");
  EXPECT_EQ(field([](CampaignOptions& o) { o.max_failed = 0; }), "max-failed");
}

TEST(FuzzCommand, ExitsWithZeroForTheCpuKernelAndOneForAMutant) {
  CampaignOptions options = small(200);
  const WorkerProgram program{BROKEN_WORKER, {}};
  options.kernel = "cpu";
  EXPECT_EQ(fuzz_command(options, program).exit_code, exit_pass);
  options.kernel = "mutant:86-lse-in-base-2";
  options.max_failed = 1;
  const CommandResult result = fuzz_command(options, program);
  EXPECT_EQ(result.exit_code, exit_kernel_wrong);
  EXPECT_THAT(result.text, testing::HasSubstr("attest check --kernel mutant:86-lse-in-base-2 --property "));
  options.kernel = "broken:declines";
  const CommandResult none = fuzz_command(options, program);
  EXPECT_EQ(none.exit_code, exit_unsupported);
  EXPECT_THAT(none.text, testing::StartsWith("NOTHING JUDGED on broken:declines: 200 cases"));
  CampaignOptions last_shard = small(2);
  last_shard.kernel = "cpu";
  last_shard.shard_index = 3;
  last_shard.shard_count = 4;
  const CommandResult empty = fuzz_command(last_shard, program);
  EXPECT_EQ(empty.exit_code, exit_unsupported) << "no case in this shard";
  EXPECT_THAT(empty.text, testing::StartsWith("NOTHING JUDGED on cpu: 0 cases"));
  options.kernel = "cpu:tile_m=7";
  EXPECT_THROW(fuzz_command(options, program), InvalidInput);
}

}  // namespace
}  // namespace attest
