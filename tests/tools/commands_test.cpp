// Every command's results: the JSON that scripts depend on, and where it goes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "npy.h"
#include "run_attest.h"

namespace attest::tools {
namespace {

using Json = nlohmann::json;

struct CommandKeys {
  std::vector<std::string> arguments;  // quick ones, which pass
  std::vector<std::string> keys;       // at least these
};

const CommandKeys command_keys[] = {
    {{"check", "--seqlen-q", "3", "--seqlen-k", "5", "--diffs", "2"}, {"kernel", "case", "verdicts"}},
    {{"fuzz", "--cases", "20"},
     {"kernel", "cases", "passed", "failed", "unsupported", "seed", "seconds", "failures", "shard"}},
    {{"mutants", "--only", "no-wait-*"}, {"mutants"}},
    {{"kernels"}, {"kernels"}},
    {{"predict", "--seqlen-q", "256", "--seqlen-k", "256"},
     {"dram_read_bytes",
      "dram_write_bytes",
      "compulsory_bytes",
      "sm_read_bytes",
      "sm_write_bytes",
      "l2_read_bytes",
      "l2_crossing_bytes",
      "smem_wavefronts",
      "smem_wavefronts_ideal",
      "smem_bytes_per_cta",
      "registers_per_thread",
      "spill_bytes_per_thread",
      "ctas_per_sm",
      "cycles",
      "time_us",
      "flops",
      "exp_count",
      "xu_instructions",
      "spill_store_instructions",
      "spill_load_instructions",
      "kernels",
      "hbm_reduction_vs_unfused",
      "bound",
      "case",
      "plan",
      "device"}},
    {{"tune", "--seqlen-q", "128", "--seqlen-k", "128", "--device", "a100", "--top", "2"},
     {"case", "device", "plans", "plans_that_fit", "walked_in_full", "why", "ranked", "others", "skipped"}},
    {{"measure", "--panel", "--from", ATTEST_PANEL},
     {"measured", "gpu", "gpc_sides", "via", "warm", "device", "device_gpc_sides", "errors", "calls"}},
    {{"reference", "--seqlen-q", "3", "--seqlen-k", "5", "--out", "truth"}, {"case", "inputs", "files"}},
    {{"audit", "--kernel", ATTEST_LISTING}, {"file", "functions"}},
    {{"bench", "--repeats", "1", "--seqlen-q", "8", "--seqlen-k", "8"}, {"kernel", "clock", "repeats", "rows"}},
    {{"nightly", "--out", "n", "--kernel", "cpu", "--time", "1s", "--steps", "fuzz"},
     {"started", "finished", "device", "driver", "toolkit", "exit_code", "seed", "red", "steps", "fuzz", "figures"}},
    {{"devices"}, {"devices"}},
    {{"plans"}, {"plans", "device", "dtype", "fields"}},
    {{"models"}, {"models"}},
    {{"doctor"},
     {"version", "compiler", "build_type", "openmp_threads", "libraries", "cuda_driver", "cuda_runtime",
      "cuda_unavailable", "nvcc", "gpus"}},
};

class CommandsTest : public ::testing::TestWithParam<CommandKeys> {};

TEST_P(CommandsTest, JsonAloneOnStdout) {
  const Folder folder;
  std::vector<std::string> arguments = GetParam().arguments;
  arguments.insert(arguments.end(), {"--json", "-"});
  const Ran ran = run_attest(arguments, folder);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json.at("schema"), "attest/" + arguments[0] + "/1");
  for (const std::string& key : GetParam().keys) EXPECT_TRUE(json.contains(key)) << key;
}

TEST_P(CommandsTest, JsonInAFileAndTextOnStdout) {
  const Folder folder;
  std::vector<std::string> arguments = GetParam().arguments;
  arguments.insert(arguments.end(), {"--json", "result.json"});
  folder.write("result.json", "what was there before");
  const Ran ran = run_attest(arguments, folder);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(Json::parse(folder.read("result.json")).at("schema"), "attest/" + arguments[0] + "/1");
  EXPECT_FALSE(ran.out.empty());
  EXPECT_FALSE(Json::accept(ran.out));
  for (const std::string& file : folder.files()) EXPECT_EQ(file.find(".part"), std::string::npos) << file;
}

TEST_P(CommandsTest, HelpNamesItsFlags) {
  const Folder folder;
  const Ran ran = run_attest({GetParam().arguments[0], "--help"}, folder);
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_NE(ran.out.find("--json FILE|-"), std::string::npos);
  EXPECT_NE(ran.out.find("Examples:\n  attest " + GetParam().arguments[0]), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Every, CommandsTest, ::testing::ValuesIn(command_keys),
                         [](const auto& row) { return row.param.arguments[0]; });

TEST(Commands, HelpListsThemAll) {
  const Folder folder;
  const Ran ran = run_attest({"--help"}, folder);
  EXPECT_EQ(ran.exit_code, 0);
  std::set<std::string> tested;
  for (const CommandKeys& command : command_keys) tested.insert(command.arguments[0]);
  // which want a GPU, or a folder of a night: nightly_command_test.cpp
  tested.insert({"calibrate", "measure", "merge", "report"});
  // "Subcommands:" lines are "  name   summary": every one of them has a row above.
  std::size_t at = ran.out.find("Subcommands:\n");
  ASSERT_NE(at, std::string::npos);
  at = ran.out.find('\n', at) + 1;
  std::size_t listed = 0;
  for (; ran.out.compare(at, 2, "  ") == 0; at = ran.out.find('\n', at) + 1, ++listed) {
    const std::string name = ran.out.substr(at + 2, ran.out.find(' ', at + 2) - at - 2);
    EXPECT_TRUE(tested.contains(name)) << name;
  }
  EXPECT_EQ(listed, tested.size());
}

TEST(Commands, ReadmeShowsTodaysPrediction) {
  const Folder folder;
  const Ran ran = run_attest({"predict", "--model", "llama-3-70b", "--seqlen", "8192", "--device", "h100"}, folder);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  std::ifstream file(ATTEST_README);
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(readme.find(ran.out), std::string::npos) << "README.md has another one than\n" << ran.out;
}

TEST(Commands, Version) {
  const Folder folder;
  EXPECT_EQ(run_attest({"--version"}, folder).out, "attest " ATTEST_VERSION "\n");
}

TEST(Commands, WhatNeedsAGpuSaysInOneLineThatThereIsNone) {
  const Folder folder;
  const Json doctor = Json::parse(run_attest({"doctor", "--json", "-"}, folder).out);
  if (doctor.at("cuda_unavailable") == "") GTEST_SKIP() << "there is a GPU here";
  const std::pair<const char*, const char*> rows[] = {
      {"check --kernel unfused", "or take --kernel cpu\n"},
      {"check --truth gpu", "or take --truth cpu\n"},
      {"fuzz --kernel sm80", "or take --kernel cpu\n"},
      {"bench --kernel sm80", "or take --kernel cpu\n"},
      {"predict --kernel sm80", "or take --plan in place of --kernel\n"}};
  for (const auto& [line, instead] : rows) {
    const Ran ran = run_attest(words(line), folder);
    EXPECT_EQ(ran.exit_code, 3) << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_TRUE(ran.err.ends_with(instead)) << line << ": " << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  for (const char* const line : {"measure", "measure --kernel sm80"}) {
    const Ran ran = run_attest(words(line), folder);
    EXPECT_EQ(ran.exit_code, 3) << ran.err;
    EXPECT_EQ(ran.err.find("--kernel cpu"), std::string::npos) << "which it refuses: " << ran.err;
  }
}

TEST(Commands, ReferenceReadsItsOwnArrays) {
  const Folder folder;
  ASSERT_EQ(run_attest({"reference", "--batch", "2", "--nheads", "4", "--nheads-k", "2", "--seqlen-q", "3",
                        "--seqlen-k", "5", "--headdim", "8", "--headdim-v", "4", "--causal", "--out", "drawn"},
                       folder)
                .exit_code,
            0);
  const Ran again = run_attest(
      {"reference", "--causal", "--q", "drawn/q.npy", "--k", "drawn/k.npy", "--v", "drawn/v.npy", "--out", "read"},
      folder);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const NpyArray o = parse_npy("o", "o.npy", folder.read("read/o.npy"));
  const NpyArray lse = parse_npy("lse", "lse.npy", folder.read("read/lse.npy"));
  EXPECT_EQ(o.shape, (std::vector<std::int64_t>{2, 3, 4, 4}));
  EXPECT_EQ(lse.shape, (std::vector<std::int64_t>{2, 4, 3}));
  // Not bit for bit: a product's order of summation hangs on where its operands happen to be aligned.
  const auto expect_equal = [&](const NpyArray& read, const char* drawn_path) {
    const NpyArray drawn = parse_npy("drawn", drawn_path, folder.read(drawn_path));
    ASSERT_EQ(read.values.size(), drawn.values.size());
    for (std::size_t i = 0; i < drawn.values.size(); ++i) {
      if (read.values[i] != drawn.values[i]) {  // -Inf is equal to itself alone
        EXPECT_NEAR(read.values[i], drawn.values[i], 1e-14) << drawn_path << " at " << i;
      }
    }
  };
  expect_equal(o, "drawn/o.npy");
  expect_equal(lse, "drawn/lse.npy");
  EXPECT_EQ(folder.files(), (std::vector<std::string>{"drawn/k.npy", "drawn/lse.npy", "drawn/o.npy", "drawn/q.npy",
                                                      "drawn/v.npy", "read/lse.npy", "read/o.npy"}));
}

// The gradients of arrays are those of the recipe that drew them, packed sequences, sink and bias included.
TEST(Commands, ReferenceGivesGradients) {
  const Folder folder;
  const Ran drawn =
      run_attest({"reference", "--nheads", "2", "--nheads-k", "1", "--headdim", "8", "--varlen-q", "3,0,2",
                  "--varlen-k", "5,1,4", "--sink", "--bias=b1qk", "--backward", "--out", "drawn"},
                 folder);
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  const std::vector<std::string> arrays = {
      "reference",   "--varlen-q",  "3,0,2",          "--varlen-k",  "5,1,4",         "--sink",
      "--bias=b1qk", "--q",         "drawn/q.npy",    "--k",         "drawn/k.npy",   "--v",
      "drawn/v.npy", "--bias-file", "drawn/bias.npy", "--sink-file", "drawn/sink.npy"};
  std::vector<std::string> again = arrays;
  again.insert(again.end(), {"--dout", "drawn/dout.npy", "--out", "read"});
  const Ran read = run_attest(again, folder);
  ASSERT_EQ(read.exit_code, 0) << read.err;
  const std::pair<std::string, std::vector<std::int64_t>> expected[] = {
      {"dq", {5, 2, 8}}, {"dk", {10, 1, 8}}, {"dv", {10, 1, 8}}, {"dsink", {2}}, {"dbias", {3, 1, 3, 5}}};
  for (const auto& [name, shape] : expected) {
    const NpyArray a = parse_npy(name, name, folder.read("drawn/" + name + ".npy"));
    const NpyArray b = parse_npy(name, name, folder.read("read/" + name + ".npy"));
    EXPECT_EQ(a.shape, shape) << name;
    ASSERT_EQ(b.shape, shape) << name;
    double largest = 0;
    for (std::size_t n = 0; n < a.values.size(); ++n) {
      EXPECT_NEAR(a.values[n], b.values[n], 1e-13) << name << " " << n;
      largest = std::max(largest, std::abs(a.values[n]));
    }
    EXPECT_GT(largest, 0) << name;
  }
  std::vector<std::string> without = arrays;
  without.insert(without.end(), {"--backward", "--out", "read"});
  const Ran refused = run_attest(without, folder);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err, "attest: backward: given needs --dout FILE beside --q, --k, --v\n");
}

// Packed sequences and every array beside them, written and read again.
TEST(Commands, ReferenceReadsItsOwnPackedArrays) {
  const Folder folder;
  const std::vector<std::string> problem = {"--varlen-q", "3,0,5",       "--varlen-k", "4,2,6",    "--alibi",
                                            "--sink",     "--bias=1hqk", "--dtype",    "fp8_e4m3", "--causal"};
  std::vector<std::string> draw = {"reference", "--nheads", "2", "--headdim", "8", "--out", "drawn"};
  draw.insert(draw.end(), problem.begin(), problem.end());
  ASSERT_EQ(run_attest(draw, folder).exit_code, 0);
  std::vector<std::string> read = {"reference", "--out", "read"};
  read.insert(read.end(), problem.begin(), problem.end());
  for (const auto& [flag, name] : {std::pair{"--q", "q"},
                                   {"--k", "k"},
                                   {"--v", "v"},
                                   {"--bias-file", "bias"},
                                   {"--alibi-slopes", "alibi_slopes"},
                                   {"--sink-file", "sink"},
                                   {"--q-descale", "q_descale"},
                                   {"--k-descale", "k_descale"},
                                   {"--v-descale", "v_descale"}}) {
    read.emplace_back(flag);
    read.push_back("drawn/" + std::string(name) + ".npy");
  }
  const Ran again = run_attest(read, folder);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(parse_npy("q", "q.npy", folder.read("drawn/q.npy")).shape, (std::vector<std::int64_t>{8, 2, 8}));
  EXPECT_EQ(parse_npy("lse", "lse.npy", folder.read("read/lse.npy")).shape, (std::vector<std::int64_t>{2, 8}));
  for (const std::string name : {"o.npy", "lse.npy"}) {
    const NpyArray a = parse_npy("a", name, folder.read("drawn/" + name)),
                   b = parse_npy("b", name, folder.read("read/" + name));
    ASSERT_EQ(a.shape, b.shape);
    for (std::size_t i = 0; i < a.values.size(); ++i)
      ASSERT_TRUE(a.values[i] == b.values[i] || std::abs(a.values[i] - b.values[i]) < 1e-12) << name << " at " << i;
  }
}

TEST(Commands, ReferenceRefusesArraysThatDoNotBelong) {
  const Folder folder;
  folder.write("a.npy", npy_bytes({1, 1, 1, 1}, {1}));
  folder.write("b.npy", npy_bytes({3, 1}, {1, 2, 3}));
  folder.write("p.npy", npy_bytes({2, 1, 1}, {1, 2}));
  const auto refusal = [&](const std::string& arrays, std::vector<std::string> more) {
    more.insert(more.begin(), {"reference", "--q", arrays, "--k", arrays, "--v", arrays, "--out", "truth"});
    const Ran ran = run_attest(more, folder);
    EXPECT_EQ(ran.exit_code, 2);
    return ran.err;
  };
  EXPECT_EQ(refusal("a.npy", {"--alibi"}), "attest: alibi: given needs --alibi-slopes FILE beside --q, --k, --v\n");
  EXPECT_EQ(refusal("a.npy", {"--alibi", "--alibi-slopes", "b.npy"}),
            "attest: alibi_slopes: shape (3, 1) has batch = 3, not 1\n");
  EXPECT_EQ(refusal("a.npy", {"--alibi-slopes", "b.npy"}), "attest: alibi_slopes: 'b.npy' needs --alibi\n");
  EXPECT_EQ(refusal("p.npy", {"--varlen-q", "1,2", "--varlen-k", "1,1"}),
            "attest: q: shape (2, 1, 1) has 2 rows, which is not the sum of varlen_q\n");
  EXPECT_EQ(folder.files(), (std::vector<std::string>{"a.npy", "b.npy", "p.npy"}));
}

// By hand: two keys with scores 0 and ln 3, so weights 1/4 and 3/4, and LSE = ln 4.
TEST(Commands, ReferenceOnArraysOfSomebodyElse) {
  const Folder folder;
  folder.write("q.npy", npy_bytes({1, 1, 1, 1}, {1}));
  folder.write("k.npy", npy_bytes({1, 2, 1, 1}, {0, 1.0986122886681098}));
  folder.write("v.npy", npy_bytes({1, 2, 1, 1}, {4, 8}));
  const Ran ran = run_attest({"reference", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--out", "."}, folder);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NEAR(parse_npy("o", "o.npy", folder.read("o.npy")).values.at(0), 7, 1e-14);
  EXPECT_NEAR(parse_npy("lse", "lse.npy", folder.read("lse.npy")).values.at(0), 1.3862943611198906, 1e-15);
}

TEST(Commands, ReferenceRefusesShapesByName) {
  const Folder folder;
  folder.write("a.npy", npy_bytes({1, 1, 1, 1}, {1}));
  folder.write("b.npy", npy_bytes({1, 1, 1, 2}, {1, 2}));
  folder.write("c.npy", npy_bytes({1, 2}, {1, 2}));
  const auto refusal = [&](const std::string& q, const std::string& k, std::vector<std::string> more) {
    more.insert(more.begin(), {"reference", "--q", q, "--k", k, "--v", "a.npy", "--out", "truth"});
    const Ran ran = run_attest(more, folder);
    EXPECT_EQ(ran.exit_code, 2);
    return ran.err;
  };
  EXPECT_EQ(refusal("a.npy", "b.npy", {}), "attest: k: shape (1, 1, 1, 2) has headdim = 2, which is 1 elsewhere\n");
  EXPECT_EQ(refusal("a.npy", "a.npy", {"--batch", "3"}),
            "attest: q: shape (1, 1, 1, 1) has batch = 1, which is 3 elsewhere\n");
  EXPECT_EQ(refusal("c.npy", "a.npy", {}),
            "attest: q: shape (1, 2) has 2 extents, not the 4 of (batch, seqlen_q, nheads, headdim)\n");
  EXPECT_EQ(folder.files(), (std::vector<std::string>{"a.npy", "b.npy", "c.npy"}));
}

}  // namespace
}  // namespace attest::tools
