// attest audit: refusals on any machine; this program's own kernels where cuobjdump is.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "attest/plan/sm80_tiles.h"
#include "attest/problem/exit_code.h"
#include "attest/problem/find_program.h"
#include "attest/problem/lines.h"
#include "attest/simulator/key_tile_instructions.h"
#include "goes.h"
#include "run_attest.h"

namespace attest::tools {
namespace {

using Json = nlohmann::json;

TEST(Audit, ReadsAListing) {
  const Folder folder;
  const Ran ran =
      run_attest({"audit", "--kernel", ATTEST_LISTING, "--plan", "fa2", "--headdim", "128", "--json", "-"}, folder);
  ASSERT_EQ(ran.exit_code, exit_pass) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json.at("schema"), "attest/audit/1");
  const Json& function = json.at("functions").at(0);
  EXPECT_EQ(function.at("name"), "my_forward");
  EXPECT_EQ(function.at("counts").at("LDGSTS"), 1);
  EXPECT_EQ(function.at("counts").at("bytes_a_lane").at("STG").at("8"), 1);
  ASSERT_EQ(function.at("loops").size(), 1u);
  EXPECT_EQ(function.at("loops").at(0).at("first_address"), 0x10);
  EXPECT_EQ(function.at("loops").at(0).at("counts").at("LDGSTS"), 0);
  EXPECT_EQ(json.at("plan_key_tile").at("LDL"), 0);
  EXPECT_GT(json.at("plan_key_tile").at("HMMA"), 0);

  const Ran table = run_attest({"audit", "--kernel", ATTEST_LISTING}, folder);
  EXPECT_NE(table.out.find("loop 0x10..0x40"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("a lane moves: LDGSTS 1 x 16 B, STG 1 x 8 B"), std::string::npos) << table.out;
  EXPECT_EQ(table.out.find("the plan"), std::string::npos) << "nobody said which";
}

// Whose two ends tell the instances of a template apart; JSON has them whole.
TEST(Audit, LongNamesAreCutInTablesAlone) {
  const Folder folder;
  const std::string name = "begin" + std::string(1000, 'x') + "end";
  folder.write("my.sass", "code for sm_" + std::string(100, '9') + "\nFunction : " + name + "\n/*0000*/ EXIT ;\n");
  const Ran table = run_attest({"audit", "--kernel", "my.sass"}, folder);
  EXPECT_EQ(table.exit_code, exit_pass) << table.err;
  EXPECT_EQ(table.out.find("sm_" + std::string(17, '9') + "... begin" + std::string(75, 'x') + "..." +
                           std::string(77, 'x') + "end\n"),
            0u)
      << table.out;
  const Json json = Json::parse(run_attest({"audit", "--kernel", "my.sass", "--json", "-"}, folder).out);
  EXPECT_EQ(json.at("functions").at(0).at("name"), name);
}

TEST(Audit, RefusesInOneLine) {
  const Folder folder;
  folder.write("text.txt", "no listing");
  const std::vector<std::tuple<std::vector<std::string>, int, std::string>> table = {
      {{"--kernel", "cpu"}, exit_usage, "kernel: 'cpu' has no machine code"},
      {{"--kernel", "./none.so"}, exit_usage, "kernel: './none.so' is no file"},
      {{"--kernel", "text.txt"}, exit_usage, "kernel: 'text.txt' holds no machine code of a GPU"},
      {{"--kernel", ATTEST_LISTING, "--arch", "sm_80"},
       exit_usage,
       "arch: 'sm_80' has no code in '" ATTEST_LISTING "', which has it for sm_90\n"},
      {{"--kernel", ATTEST_LISTING, "--function", "yours"}, exit_usage, "function: 'yours' is in none of the 1"},
      {{"--kernel", ATTEST_LISTING, "--plan", "fa4"}, exit_usage, "plan: 'fa4' is none of"},
      {{"--kernel", ATTEST_LISTING, "--set", "bogus=1"}, exit_usage, "set: --set goes with --plan P\n"},
      {{"--kernel", ATTEST_LISTING, "--device", "nosuch"}, exit_usage, "device: --device goes with --plan P\n"},
      {{"--kernel", ATTEST_LISTING, "--headdim", "128"}, exit_usage, "headdim: --headdim goes with --plan P\n"},
      {{"--kernel", ATTEST_LISTING, "--plan", "fa2", "--device", "nosuch"}, exit_usage, "device: 'nosuch' is none of"},
      {{"--kernel", "."}, exit_usage, "kernel: '.' is no file"},
      {{"--kernel", ""}, exit_usage, "kernel: ''"}};
  for (const auto& [flags, code, line] : table) {
    std::vector<std::string> arguments = {"audit"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Ran ran = run_attest(arguments, folder);
    EXPECT_EQ(ran.exit_code, code) << line;
    EXPECT_NE(ran.err.find("attest: " + line), std::string::npos) << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_TRUE(ran.out.empty());
  }
}

/// Where the cuobjdump in $PATH is a script of ours, which runs in `folder`.
Ran run_with_cuobjdump(const std::string& script, const std::vector<std::string>& arguments, const Folder& folder) {
  folder.write("cuobjdump", "#!/bin/sh\n" + script);
  std::filesystem::permissions(folder.path() / "cuobjdump", std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  Ran ran = run_attest(arguments, folder);
  ::setenv("PATH", path.c_str(), 1);
  return ran;
}

// Of a library's code, which is printed before it ends as it does.
TEST(Audit, ACuobjdumpThatFailsGivesNoTable) {
  const Folder folder;
  std::filesystem::copy(ATTEST_LISTING, folder.path() / "listing");
  folder.write("my.so",
               "\x7f"
               "ELF");
  const struct {
    std::string end;
    int code;
    std::string why;
  } rows[] = {
      {"exit 0", exit_pass, ""},
      {"echo warning >&2; printf 'fatal: half\x1b\n' >&2; exit 255", exit_environment,
       "exit status 255: fatal: half\\x1b"},
      {"exit 1", exit_environment, "exit status 1"},
      {"kill -SEGV $$", exit_environment, "SIGSEGV"},
  };
  const std::string library = (std::filesystem::canonical(folder.path()) / "my.so").string();
  for (const auto& [end, code, why] : rows) {
    const Ran ran = run_with_cuobjdump("cat listing\n" + end + "\n", {"audit", "--kernel", "my.so"}, folder);
    EXPECT_EQ(ran.exit_code, code) << end;
    EXPECT_EQ(ran.err, why.empty() ? "" : fmt::format("attest: cuobjdump: '{}': {}\n", library, why)) << end;
    EXPECT_EQ(ran.out.empty(), code != exit_pass) << end;
  }
  const Ran none = run_with_cuobjdump("echo \"File does not contain device code\" >&2; exit 255\n",
                                      {"audit", "--kernel", "my.so"}, folder);
  EXPECT_EQ(none.exit_code, exit_usage);
  EXPECT_EQ(none.err, "attest: kernel: 'my.so' holds no machine code of a GPU\n");
}

// At once: nothing is disassembled.
TEST(Audit, AnArchitectureThatIsNotThereIsRefusedWithThoseThatAre) {
  const Folder folder;
  std::filesystem::copy(ATTEST_LISTING, folder.path() / "listing");
  folder.write("my.so",
               "\x7f"
               "ELF");
  const std::string library = (std::filesystem::canonical(folder.path()) / "my.so").string();
  const auto audit = [&](const std::string& if_listed, const std::string& if_disassembled, const std::string& arch) {
    return run_with_cuobjdump("[ $1 = --list-elf ] && { " + if_listed + "; }\n" + if_disassembled + "\n",
                              {"audit", "--kernel", "my.so", "--arch", arch}, folder);
  };
  const std::string list =
      "printf 'ELF file    1: my.1.sm_80.cubin\nELF file    2: my.2.sm_90a.cubin\nELF file    3: other.sm_80.cubin\n'; "
      "exit 0";
  const Ran refused = audit(list, "touch disassembled", "sm_90");
  EXPECT_EQ(refused.exit_code, exit_usage);
  EXPECT_EQ(refused.err, "attest: arch: 'sm_90' has no code in '" + library + "', which has it for sm_80, sm_90a\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "disassembled"));
  const Ran crashed = audit("kill -SEGV $$", "touch disassembled", "sm_90");
  EXPECT_EQ(crashed.exit_code, exit_environment);
  EXPECT_EQ(crashed.err, "attest: cuobjdump: '" + library + "': SIGSEGV\n");
  const std::string none = "echo 'cuobjdump info    : File does not contain device code' >&2; exit 255";
  EXPECT_EQ(audit(none, "touch disassembled", "sm_90").err, "attest: arch: 'sm_90' has no code in '" + library + "'\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "disassembled"));
  const Ran there = audit("echo 'ELF file    1: my.sm_90.cubin'; exit 0",
                          "[ \"$1 $2 $3\" = '-sass -arch sm_90' ] && exec cat listing", "sm_90");
  EXPECT_EQ(there.exit_code, exit_pass) << there.err;
}

TEST(Audit, ALineWithoutAnEndIsRefused) {
  const Folder folder;
  const std::string line(Lines::most_bytes + 1, 'x'), more = "a line of more than 1048576 bytes\n";
  folder.write("my.sass", line);
  folder.write("my.so",
               "\x7f"
               "ELF");
  const Ran listing = run_attest({"audit", "--kernel", "my.sass"}, folder);
  EXPECT_EQ(listing.exit_code, exit_usage);
  EXPECT_EQ(listing.err, "attest: kernel: 'my.sass' has " + more);
  const Ran object = run_with_cuobjdump("exec tr '\\0' x < /dev/zero\n", {"audit", "--kernel", "my.so"}, folder);
  EXPECT_EQ(object.exit_code, exit_environment);
  EXPECT_EQ(object.err,
            "attest: cuobjdump: '" + (std::filesystem::canonical(folder.path()) / "my.so").string() + "': " + more);
}

// A script whose own child outlives it, where it is only killed itself.
TEST(Audit, NothingOfACuobjdumpOutlivesTheAudit) {
  const struct {
    std::string end;
    int code;
  } rows[] = {{"kill -INT $PPID; wait", exit_interrupted},
              {"kill -TERM $PPID; wait", exit_interrupted},
              {"kill -HUP $PPID; wait", exit_interrupted},
              {"exec tr '\\0' x < /dev/zero", exit_environment}};
  for (const auto& [end, code] : rows) {
    const Folder folder;
    folder.write("my.so",
                 "\x7f"
                 "ELF");
    const Ran ran = run_with_cuobjdump("sleep 60 >&- 2>&- & echo $! > pid\n" + end + "\n",
                                       {"audit", "--kernel", "my.so", "--json", "audit.json"}, folder);
    EXPECT_EQ(ran.exit_code, code) << end;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "audit.json"));
    std::string pid = folder.read("pid");
    ASSERT_FALSE(pid.empty());
    pid.pop_back();
    EXPECT_TRUE(goes(pid)) << end;
  }
}

// What the CUDA kernels issue for a key tile is what the recorded program says: the compiler can merge and move, but
// matrix steps, matrix loads, exponentials and barriers are volatile and stay. Copies stand there twice, for whole
// tiles and the last, and the general kind has those of other widths besides; Q's fragments are loaded in the loop,
// under a branch that the first tile takes.
TEST(Audit, FindsThePlanInOurOwnKernels) {
  if (!ATTEST_HAVE_CUDA) GTEST_SKIP() << "built without CUDA";
  if (find_program("cuobjdump", {"/usr/local/cuda/bin"}).empty()) GTEST_SKIP() << "no cuobjdump";
  const Folder folder;
  const Ran ran = run_attest(
      {"audit", "--kernel", "sm80", "--function", "forward_kernel", "--arch", "sm_80", "--json", "-"}, folder);
  ASSERT_EQ(ran.exit_code, exit_pass) << ran.err;
  const Json functions = Json::parse(ran.out).at("functions");
  int loops = 0;
  for (const Sm80Tile tile : all_sm80_tiles) {
    const KernelPlan plan = sm80_plan(tile);
    const KeyTileInstructions each = key_tile_instructions(plan);
    const int of_q = plan.q_in_registers ? plan.m_blocks() * plan.headdim / 16 : 0;
    for (const Json& function : functions) {
      const auto name = function.at("name").get<std::string>();
      if (name.find(fmt::format("(attest::Sm80Tile){},", static_cast<int>(tile))) == std::string::npos) continue;
      for (const Json& loop : function.at("loops")) {
        const Json& counts = loop.at("counts");
        EXPECT_EQ(counts.at("HMMA"), each.multiply) << name;
        EXPECT_EQ(counts.at("LDSM"), each.load_matrix + of_q) << name;
        EXPECT_EQ(counts.at("MUFU.EX2"), each.exponentials) << name;
        EXPECT_EQ(counts.at("BAR"), each.barriers) << name;
        EXPECT_EQ(counts.at("LDGSTS").get<int>() % static_cast<int>(each.copies), 0) << name;
        ++loops;
      }
    }
  }
  EXPECT_GE(loops, static_cast<int>(functions.size())) << "a function without a loop over key tiles";
}

}  // namespace
}  // namespace attest::tools
