// ncu's command line, its launches dealt out to calls, and why it failed.
#include "ncu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "attest/fuzz/worker.h"
#include "attest/problem/error.h"

namespace attest::tools {
namespace {

using testing::HasSubstr;

TEST(Ncu, EmptiesCachesUnlessWarmAndLeavesTheClocksAlone) {
  const auto cold = ncu_command("ncu", "log", false, {"attest", "__measure", "calls.json"});
  const auto value_of = [](const std::vector<std::string>& words, const std::string& flag) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == flag) return words[i + 1];
    return std::string();
  };
  EXPECT_EQ(cold.front(), "ncu");
  EXPECT_EQ(cold.back(), "calls.json");
  EXPECT_EQ(value_of(cold, "--cache-control"), "all");
  EXPECT_EQ(value_of(cold, "--clock-control"), "none");
  EXPECT_EQ(value_of(cold, "--log-file"), "log");
  EXPECT_THAT(value_of(cold, "--metrics"), HasSubstr("memory_l1_wavefronts_shared_ideal"));
  EXPECT_EQ(value_of(ncu_command("ncu", "log", true, {}), "--cache-control"), "none");
}

TEST(Ncu, LaunchesAfterAMarkAreThatCalls) {
  const std::vector<MeasuredLaunch> log = {{"mark()", {}}, {"a", {}}, {"mark()", {}}, {"b", {}}, {"c", {}}};
  std::vector<MeasuredCall> calls(2);
  deal_out(log, "mark", calls);
  ASSERT_EQ(calls[0].launches.size(), 1u);
  ASSERT_EQ(calls[1].launches.size(), 2u);
  EXPECT_EQ(calls[1].launches[1].function, "c");
  std::vector<MeasuredCall> three(3), one(1);
  EXPECT_THROW(deal_out(log, "mark", three), EnvironmentError);
  EXPECT_THROW(deal_out(log, "mark", one), EnvironmentError);
  EXPECT_THROW(deal_out({{"a", {}}, {"mark", {}}}, "mark", one), EnvironmentError);
}

template <class Error>
std::string thrown_of(int status, std::string_view said) {
  try {
    throw_ncu_failed(status, said);
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
}

TEST(Ncu, AMissingPermissionIsNamedWithWhatToDo) {
  const std::string why =
      thrown_of<EnvironmentError>(1, "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n");
  EXPECT_THAT(why, HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
  EXPECT_THAT(why, HasSubstr("SYS_ADMIN"));
}

TEST(Ncu, WhatItSaysLastIsWhyItFailed) {
  EXPECT_EQ(thrown_of<EnvironmentError>(9, "x\n==ERROR== one\n==ERROR== two\n"),
            "ncu ended with status 9: ==ERROR== two");
  EXPECT_EQ(thrown_of<EnvironmentError>(3, ""), "ncu ended with status 3");
  EXPECT_EQ(thrown_of<EnvironmentError>(1, "==ERROR== Failed to parse options: [/root/.config]\n"),
            "ncu ended with status 1: ==ERROR== Failed to parse options: [/root/.config]");
}

TEST(Ncu, AKernelThatFailsInItsWorkerIsACrashAndKeepsItsWords) {
  EXPECT_EQ(thrown_of<KernelCrashed>(4,
                                     "attest: kernel 'k' on CASE: misaligned address\n==PROF== Connected\n"
                                     "==ERROR== The application returned an error code (4).\n"),
            "kernel 'k' on CASE: misaligned address");
  EXPECT_EQ(thrown_of<KernelCrashed>(4, "attest: kernel 'k' on CASE: misaligned address\n"),
            "kernel 'k' on CASE: misaligned address");
  EXPECT_EQ(thrown_of<KernelCrashed>(11, "==ERROR== The application returned an error code (11).\n"),
            "the kernel brought the worker of ncu down: ncu ended with status 11: ==ERROR== The application returned "
            "an error code (11).");
  EXPECT_EQ(thrown_of<EnvironmentError>(3,
                                        "attest: GPU memory: 2 bytes are needed\n"
                                        "==ERROR== The application returned an error code (3).\n"),
            "GPU memory: 2 bytes are needed");
}

TEST(Ncu, RequestsComeBackAsTheyWere) {
  std::vector<MeasuredCall> calls(2);
  calls[0].kernel = "sm80";
  calls[1].kernel = "unfused";
  calls[1].c.problem.batch = 7;
  const auto back = requests_from_json_text(requests_to_json(calls).dump());
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].kernel, "sm80");
  EXPECT_EQ(back[1].kernel, "unfused");
  EXPECT_EQ(back[1].c, calls[1].c);
}

}  // namespace
}  // namespace attest::tools
