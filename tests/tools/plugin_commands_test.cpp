// A library of one's own on the command line: what each command says of it, and with which exit status.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "goes.h"
#include "run_attest.h"

namespace attest::tools {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

const std::string c_example = EXAMPLES "/libexample_c.so", cpp_example = EXAMPLES "/libexample_cpp.so";

Ran run(const std::vector<std::string>& arguments) {
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

TEST(PluginCommands, WhatIsLoadedAndIsNoPluginIsNamed) {
  const Folder folder;
  folder.write("empty.c", "int nothing;\n");
  const std::string at = folder.path().string();
  ASSERT_EQ(std::system(fmt::format("cc -shared -fPIC -o {0}/empty.so {0}/empty.c", at).c_str()), 0);
  const Ran empty = run_attest(words("check --kernel ./empty.so"), folder);
  EXPECT_EQ(empty.exit_code, 3);
  EXPECT_EQ(empty.err, "attest: kernel './empty.so' exports no function attest_kernel\n");
  // the night goes on without it, and says so
  const Ran night =
      run_attest(words("nightly --out n --time 5s --steps fuzz --kernel cpu --kernel ./empty.so"), folder);
  EXPECT_EQ(night.exit_code, 0);
  EXPECT_THAT(night.out + night.err, HasSubstr("exports no function attest_kernel"));
  folder.write("null.c", "const void* attest_kernel(int abi) { return (void*)0; }\n");
  ASSERT_EQ(std::system(fmt::format("cc -shared -fPIC -o {0}/null.so {0}/null.c", at).c_str()), 0);
  const Ran null = run_attest(words("check --kernel ./null.so"), folder);
  EXPECT_EQ(null.exit_code, 3);
  EXPECT_EQ(null.err, "attest: kernel './null.so': attest_kernel() gave no table\n");
}

// A kernel may repeat them, and attest does not.
TEST(PluginCommands, LongOptionsAreShortened) {
  const std::string options(100'000, 'x');
  const Ran check = run({"check", "--kernel", cpp_example + ":" + options}),
            doctor = run({"doctor", "--kernel", cpp_example + ":" + options});
  EXPECT_EQ(check.exit_code, 2);
  EXPECT_THAT(check.err, testing::StartsWith("attest: kernel: '" + options.substr(0, 195) + "...' "));
  EXPECT_LT(check.err.size(), 1000u);
  EXPECT_EQ(doctor.exit_code, 2);
  EXPECT_LT(doctor.out.size(), 2000u);
}

// Every command that loads a kernel.
const std::vector<std::string> loading_commands = {"check", "fuzz --cases 4 --threads 2", "bench", "doctor",
                                                   "nightly --out n --steps time --time 8s"};

// A library and a Python file that do `c` and `python` as soon as they are loaded.
void write_kernels(const Folder& folder, const std::string& c, const std::string& python) {
  folder.write("load.c",
               "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) static void "
               "f(void) {" +
                   c + ";}\n");
  const std::string at = folder.path().string();
  ASSERT_EQ(std::system(fmt::format("cc -shared -fPIC -o {0}/load.so {0}/load.c", at).c_str()), 0);
  folder.write("load.py", "import os, sys, time\n" + python + "\n");
}

Ran run_loading(const Folder& folder, const std::string& command, const std::string& kernel) {
  return run_attest(words(command + " --kernel ./" + kernel), folder);
}

TEST(PluginCommands, WhatEndsTheProcessThatLoadsItIsAFinding) {
  const Folder folder;
  for (const auto& [c, python, how] :
       {std::tuple{"exit(0)", "os._exit(0)", "exit status 0"}, {"abort()", "os.abort()", "SIGABRT"}}) {
    write_kernels(folder, c, python);
    for (const char* const kernel : {"load.so", "load.py"})
      for (const std::string& command : loading_commands) {
        const Ran ran = run_loading(folder, command, kernel);
        EXPECT_EQ(ran.exit_code, 4) << command << ": " << ran.err;
        EXPECT_THAT(ran.out + ran.err, HasSubstr(fmt::format("kernel './{}' ", kernel))) << command;
        EXPECT_THAT(ran.out + ran.err, HasSubstr(how)) << command;
      }
  }
  EXPECT_EQ(run({"bench", "--kernel", "./none.so"}).exit_code, 2) << "what is thrown there keeps its status";
}

TEST(PluginCommands, WhatHangsWhileItIsLoadedIsAFinding) {
  const Folder folder;
  write_kernels(folder, "for (;;) pause()", "time.sleep(1000)");
  for (const char* const kernel : {"load.so", "load.py"})
    for (const std::string& command : loading_commands) {
      if (command.starts_with("nightly")) continue;  // its bench has a limit of its own, and its step ends before
      const Ran ran = run_loading(folder, command + " --timeout 5s --load-timeout 1s", kernel);
      EXPECT_EQ(ran.exit_code, 4) << command << ": " << ran.err;
      EXPECT_THAT(ran.out + ran.err, HasSubstr(fmt::format("kernel './{}' is not loaded after 1 s", kernel)))
          << command;
    }
}

// A daemon of its own, whom no process group holds.
TEST(PluginCommands, WhatItStartsInASessionOfItsOwnEndsWithIt) {
  const Folder folder;
  write_kernels(folder,
                "if (fork() == 0) { setsid(); if (fork()) _exit(0);"
                " FILE* f = fopen(\"new\", \"w\"); fprintf(f, \"%d\", getpid()); fclose(f); rename(\"new\", \"pid\");"
                " for (;;) pause(); } while (access(\"pid\", F_OK)) usleep(1000)",
                "if os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n"
                "  f = open('new', 'w'); f.write(str(os.getpid())); f.close(); os.rename('new', 'pid')\n"
                "  time.sleep(1000)\nwhile not os.path.exists('pid'): time.sleep(0.001)");
  for (const char* const kernel : {"load.so", "load.py"})
    for (const std::string& command : loading_commands) {
      run_loading(folder, command, kernel);
      EXPECT_TRUE(goes(folder.read("pid"))) << command << " leaves " << kernel;
      std::filesystem::remove(folder.path() / "pid");
    }
}

TEST(PluginCommands, ALimitOfCallsIsNoneOfLoading) {
  const Folder folder;
  folder.write("late.py",
               "import attest, time\ntime.sleep(1)\n\n@attest.kernel('late', dtypes=['fp32'], arithmetic='fp32')\n"
               "def late(problem, t):\n    pass\n");
  const Ran ran = run_loading(folder, "bench --timeout 500ms --repeats 1 --dtype fp32", "late.py");
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
}

TEST(PluginCommands, ASignalEndsTheWaitForWhatHangsWhileItIsLoaded) {
  const Folder folder;
  write_kernels(folder, "FILE* f = fopen(\"pid\", \"w\"); fprintf(f, \"%d\", getpid()); fclose(f); for (;;) pause()",
                "f = open('pid', 'w'); f.write(str(os.getpid())); f.close(); time.sleep(1000)");
  for (const char* const kernel : {"load.so", "load.py"})
    for (const std::string command : {"check --timeout 8s", "fuzz --timeout 8s", "bench", "doctor"}) {
      const auto before = std::chrono::steady_clock::now();
      const Ran ran =
          run_attest(words(command + " --kernel ./" + kernel), folder, {.signal_seconds = 0.5, .signal = SIGTERM});
      EXPECT_EQ(ran.exit_code, 130) << command << ": " << ran.err;
      EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(6)) << command;
      EXPECT_TRUE(goes(folder.read("pid"))) << command << " leaves " << kernel;
    }
}

TEST(PluginCommands, BenchWaitsForNoCpuTimeOfAKernelThatSleeps) {
  // The limit is one call's, which is of 0.3 s; all of a case are more than 1 s.
  for (const std::string kernel : {PLUGINS "/libliar.so:run_sleep", LIARS "/liar.py:sleeps"}) {
    const Ran ran =
        run({"bench", "--timeout", "1s", "--repeats", "1", "--kernel", kernel, "--dtype", "fp32", "--json", "-"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_LT(Json::parse(ran.out).at("rows").at(0).at("seconds").at(0), 0.1) << "of the CPU";
  }
}

// 4.5 s of batches, of which one may take 2.5 s.
TEST(PluginCommands, ALongSeriesIsNoHang) {
  const Ran ran =
      run({"bench", "--timeout", "500ms", "--repeats", "150", "--kernel", LIARS "/liar.py:burns", "--dtype", "fp32"});
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
}

TEST(PluginCommands, BenchOfWhatTheKernelTakesNoneOfIsSkipped) {
  const Ran ran = run({"bench", "--kernel", c_example, "--json", "-"});
  EXPECT_EQ(ran.exit_code, 77) << "it takes fp32 only, and the panel is of bf16: " << ran.err;
  for (const Json& row : Json::parse(ran.out).at("rows")) EXPECT_NE(row.at("refused"), "");
}

TEST(PluginCommands, ACallThatTheNightsLimitCallsHungIsAFinding) {
  const Folder folder;
  folder.write("hangs.py",
               "import attest, time\n\n@attest.kernel('hangs', dtypes=['bf16'], arithmetic='fp32')\n"
               "def hangs(problem, t):\n    time.sleep(1000)\n");
  const Ran ran = run_loading(folder, "nightly --out n --steps time --time 15s --timeout 1s --json n.json", "hangs.py");
  EXPECT_EQ(ran.exit_code, 4) << ran.err;
  const Json red = Json::parse(folder.read("n.json")).at("red").at(0);
  EXPECT_EQ(red.at("state"), "crashed");
  EXPECT_THAT(red.at("detail").get<std::string>(), HasSubstr("hung: no end after 1 s"));
}

// Before it is loaded into the program itself, whose counters see only its own launches.
TEST(PluginCommands, MeasureTellsWhatTheKernelDoesInsteadOfReturning) {
  const Folder folder;
  for (const auto& [word, exit_code, how] : {std::tuple{"run_hang", 4, "no end after 1 s in the kernel"},
                                             {"run_crash", 4, "SIGSEGV in the kernel"},
                                             {"fails", 4, "forward() gave ATTEST_FAILED"},
                                             {"supports_nothing", 77, "batch: 1 is not to my liking"}}) {
    const std::string kernel = fmt::format("{}/libliar.so:{}", PLUGINS, word);
    ::setenv("ATTEST_PLANT", (kernel + ":on_gpu").c_str(), 1);
    const Ran ran =
        run_attest({"measure", "--timeout", "1s", "--kernel", kernel, "--dtype", "fp32", "--html", "page.html"}, folder,
                   {.program = ATTEST_PLANTED_PROGRAM});
    ::unsetenv("ATTEST_PLANT");
    EXPECT_EQ(ran.exit_code, exit_code) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(how));
    EXPECT_TRUE(folder.files().empty()) << testing::PrintToString(folder.files());
  }
}

TEST(PluginCommands, BenchTellsWhatTheKernelDoesInsteadOfReturning) {
  const Folder folder;
  const std::string liars = LIARS "/liar.py:", library = PLUGINS "/libliar.so:";
  for (const auto& [kernel, how] : {std::pair{library + "run_hang", "hung: no end after 1 s in the kernel"},
                                    {library + "run_exit", "crashed: exit status 0 in the kernel"},
                                    {library + "run_crash", "crashed: SIGSEGV in the kernel"},
                                    {library + "fails", "the kernel fails: forward() gave ATTEST_FAILED"},
                                    {liars + "exits", "crashed: python ended with exit status 0"},
                                    {liars + "leaves", "crashed: python ended with exit status 3"},
                                    {liars + "hangs", "hung: no end after 1 s in the kernel"},
                                    {liars + "tires", "hung: no end after 3 s in a series of timed calls"}}) {
    const Ran ran =
        run_attest({"bench", "--timeout", "1s", "--kernel", kernel, "--dtype", "fp32", "--json", "b.json"}, folder);
    EXPECT_EQ(ran.exit_code, 4) << ran.err;
    const Json row = Json::parse(folder.read("b.json")).at("rows").at(0);
    EXPECT_THAT(row.at("failed").get<std::string>(), HasSubstr(how));
    EXPECT_THAT(row.at("repro").get<std::string>(),
                testing::StartsWith("attest bench --kernel " + kernel + " --batch 1"));
    EXPECT_THAT(ran.out, HasSubstr(how));
  }
}

}  // namespace
}  // namespace attest::tools
