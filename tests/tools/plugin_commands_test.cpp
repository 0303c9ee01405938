// A library of one's own on the command line: what each command says of it, and with which exit status.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "run_attest.h"

namespace attest::tools {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

const std::string c_example = EXAMPLES "/libexample_c.so", cpp_example = EXAMPLES "/libexample_cpp.so";

Ran run(std::vector<std::string> arguments) {
  const Folder folder;
  return run_attest(arguments, folder);
}

TEST(PluginCommands, EveryCommandTakesALibrary) {
  const Ran kernels = run({"kernels", "--kernel", c_example, "--json", "-"});
  EXPECT_EQ(kernels.exit_code, 0) << kernels.err;
  const Json record = Json::parse(kernels.out).at("kernels").at(0);
  EXPECT_EQ(record.at("device"), "cpu");
  EXPECT_EQ(record.at("lse_of_empty_row"), "-inf");
  EXPECT_EQ(run({"check", "--kernel", c_example, "--dtype", "fp32", "--seqlen-q", "3", "--seqlen-k", "5"}).exit_code,
            0);
  EXPECT_EQ(run({"check", "--kernel", c_example, "--dtype", "fp16"}).exit_code, 77) << "it takes fp32 only";
  EXPECT_EQ(run({"fuzz", "--kernel", cpp_example + ":tile=8", "--cases", "200"}).exit_code, 0);
  const Ran doctor = run({"doctor", "--kernel", cpp_example, "--json", "-"});
  EXPECT_EQ(doctor.exit_code, 0) << doctor.err;
  EXPECT_EQ(Json::parse(doctor.out).at("steps").at(0).at("result"), "right");
}

TEST(PluginCommands, PredictTakesThePlanThatTheKernelTells) {
  const std::vector<std::string> the_case = {"--dtype", "bf16", "--seqlen-q", "256", "--seqlen-k", "256"};
  const auto predict = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "predict");
    arguments.insert(arguments.end(), the_case.begin(), the_case.end());
    return run(arguments);
  };
  const Ran told = predict({"--kernel", cpp_example, "--json", "-"}), named = predict({"--plan", "fa2", "--json", "-"});
  ASSERT_EQ(told.exit_code, 0) << told.err;
  EXPECT_EQ(Json::parse(told.out).at("dram_read_bytes"), Json::parse(named.out).at("dram_read_bytes"));
  EXPECT_EQ(Json::parse(told.out).at("cycles"), Json::parse(named.out).at("cycles"));
  EXPECT_EQ(predict({"--kernel", cpp_example, "--plan", "fa2"}).exit_code, 2);
  EXPECT_EQ(predict({"--kernel", c_example}).exit_code, 2) << "it refuses bf16";
}

TEST(PluginCommands, MeasureTakesThoseThatRunOnAGpu) {
  const Ran on_host = run({"measure", "--kernel", c_example, "--dtype", "fp32"});
  EXPECT_EQ(on_host.exit_code, 2);
  EXPECT_EQ(on_host.err, "attest: kernel: '" + c_example + "' runs on no GPU, whose counters are read\n");
}

TEST(PluginCommands, WhatIsNoPluginIsOneLine) {
  for (const std::string command : {"fuzz", "check", "doctor", "kernels", "predict", "measure"}) {
    const Ran ran = run({command, "--kernel", "./libnone.so"});
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_EQ(ran.err, "attest: kernel: './libnone.so' is no file\n");
  }
  EXPECT_THAT(run({"doctor", "--timeout", "5s"}).err, HasSubstr("timeout: 5s goes with --kernel"));
}

TEST(PluginCommands, BenchSaysWhatBecameOfItsChild) {
  const Folder folder;
  for (const auto& [end, how] : {std::pair{"exit(0)", "exit status 0"}, {"abort()", "SIGABRT"}}) {
    std::ofstream(folder.path() / "ends.c")
        << "#include <stdlib.h>\n__attribute__((constructor)) static void f(void) {" << end << ";}\n";
    ASSERT_EQ(std::system(fmt::format("cc -shared -fPIC -o {0}/ends.so {0}/ends.c", folder.path().string()).c_str()),
              0);
    const Ran ran = run_attest({"bench", "--kernel", "./ends.so", "--dtype", "fp32"}, folder);
    EXPECT_EQ(ran.exit_code, 4);
    EXPECT_EQ(ran.err, fmt::format("attest: kernel './ends.so' ended the process that called it: {}\n", how));
  }
  EXPECT_EQ(run({"bench", "--kernel", "./none.so"}).exit_code, 2) << "what is thrown there keeps its status";
}

}  // namespace
}  // namespace attest::tools
