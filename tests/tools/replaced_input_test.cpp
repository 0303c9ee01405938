// An output that would replace what a command reads, or keeps, is refused, and the file is as it was.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "attest/problem/error.h"
#include "output.h"
#include "run_attest.h"

namespace attest::tools {
namespace {

void expect_refused(const Folder& folder, const std::string& line, const std::string& words_of_it,
                    const std::string& file) {
  const std::string before = folder.read(file);
  const std::vector<std::string> files = folder.files();
  const Ran ran = run_attest(words(line), folder);
  EXPECT_EQ(ran.exit_code, 2) << line;
  EXPECT_EQ(ran.err, "attest: " + words_of_it + "\n") << line;
  EXPECT_EQ(folder.read(file), before) << line;
  EXPECT_EQ(folder.files(), files) << line;
}

TEST(ReplacedInput, TheFileOfAKernel) {
  const Folder folder;
  folder.write("k.so", "x");
  folder.write("k.py", "x");
  const struct {
    const char *line, *field;
  } rows[] = {{"check --json", "json"},   {"check --mask", "mask"},   {"fuzz --json", "json"},
              {"fuzz --junit", "junit"},  {"bench --json", "json"},   {"doctor --json", "json"},
              {"measure --html", "html"}, {"kernels --json", "json"}, {"nightly --out n --json", "json"}};
  for (const auto& [line, field] : rows)
    for (const std::string& file : {std::string("k.so"), std::string("k.py")})
      expect_refused(folder, line + (" " + file) + " --kernel ./" + file,
                     field + (": '" + file) + "' is read for --kernel, and would be replaced", file);
  expect_refused(folder, "fuzz --kernel ./k.so:tile=8 --json k.so",
                 "json: 'k.so' is read for --kernel, and would be replaced", "k.so");
  expect_refused(folder, "nightly --out n --kernel cpu --kernel ./k.so --json k.so",
                 "json: 'k.so' is read for --kernel, and would be replaced", "k.so");
}

TEST(ReplacedInput, AFileOfMachineCode) {
  const Folder folder;
  folder.write("my.sass", "x");
  folder.write("my:sass.txt", "x");
  for (const std::string& file : {std::string("my.sass"), std::string("my:sass.txt")})
    for (const std::string& kernel : {file, "./" + file})
      expect_refused(folder, "audit --kernel " + kernel + " --json " + file,
                     "json: '" + file + "' is read for --kernel, and would be replaced", file);
}

TEST(ReplacedInput, AFileThatIsSweptOver) {
  const Folder folder;
  folder.write("p.json", "{\"schema\":\"attest/plan/1\",\"base\":\"fa2\"}");
  for (const std::string& field : {std::string("json"), std::string("csv"), std::string("html")})
    expect_refused(folder, "predict --headdim 128 --sweep plan=attest,./p.json --" + field + " p.json",
                   field + ": 'p.json' is read for --sweep, and would be replaced", "p.json");
  expect_refused(folder, "predict --headdim 128 --sweep device=./p.json --json ./p.json",
                 "json: './p.json' is read for --sweep, and would be replaced", "p.json");
}

TEST(ReplacedInput, AnotherNameOfIt) {
  const Folder folder;
  folder.write("k.so", "x");
  std::filesystem::create_hard_link(folder.path() / "k.so", folder.path() / "hard");
  std::filesystem::create_symlink("k.so", folder.path() / "soft");
  for (const std::string& name : {std::string("hard"), std::string("soft")})
    expect_refused(folder, "check --kernel ./k.so --json " + name,
                   "json: '" + name + "' is read for --kernel, and would be replaced", name);
}

TEST(ReplacedInput, TheFolderOfACorpus) {
  const Folder folder;
  std::filesystem::create_directory(folder.path() / "c");
  folder.write("c/x", "x");
  for (const std::string& flag : {std::string("json"), std::string("junit")})
    expect_refused(folder, "fuzz --cases 4 --corpus c --" + flag + " ./c/x",
                   flag + ": './c/x' is in the folder of --corpus, which is read", "c/x");
}

TEST(ReplacedInput, ANameInAFolderThatIsGiven) {
  const Folder folder;
  folder.write("h200_panel.csv", "x");
  CLI::App app("test", "measure");
  Flags flags(app);
  flags.value("--out", "PATH", "");
  flags.value("--against", "FILE", "");
  const std::string panel = (folder.path() / "h200_panel.csv").string();
  app.parse(
      std::vector<std::string>{panel, "--against", folder.path().string(), "--out"});  // CLI11 takes the last first
  EXPECT_THROW(output_file(flags, "--out", "h200_panel.csv"), InvalidInput);
  EXPECT_EQ(output_file(flags, "--out", "a100_panel.csv")->path(), folder.path() / "a100_panel.csv");
}

TEST(ReplacedInput, WhatANightKeeps) {
  const Folder folder;
  for (const char* name : {"history.sqlite", "lock", "index.html", "junit.xml", "nightly.json", "corpus/a.json"}) {
    const std::string file = std::string("n/") + name;
    std::filesystem::create_directories((folder.path() / file).parent_path());
    folder.write(file, "x");
    const std::string why = ": '" + file + "' is the file of --json as well; one would replace the other";
    expect_refused(folder, "nightly --out n --steps doctor --time 1s --json ./" + file, "out" + why, file);
    expect_refused(folder, "report ./n/../n --json " + file, "dir: './n/../" + file + why.substr(why.find("' is")),
                   file);
  }
}

TEST(ReplacedInput, AShardThatIsMerged) {
  const Folder folder;
  std::filesystem::create_directory(folder.path() / "s");
  ASSERT_EQ(run_attest(words("fuzz --cases 4 --threads 1 --json s/a.json"), folder).exit_code, 0);
  expect_refused(folder, "merge s --json ./s/a.json",
                 "dir: 's/a.json' is the file of --json as well; one would replace the other", "s/a.json");
  folder.write("s/b.json", "{");
  expect_refused(folder, "merge s --json s/b.json",
                 "dir: 's/b.json' is the file of --json as well; one would replace the other", "s/b.json");
  EXPECT_EQ(run_attest(words("merge s --json s/c.json"), folder).exit_code, 3) << "it names b.json";
  EXPECT_EQ(run_attest(words("merge s --json s/c.json"), folder).exit_code, 3) << "a merge is no shard";
}

TEST(ReplacedInput, ANightThatIsMerged) {
  const Folder folder;
  ASSERT_EQ(run_attest(words("nightly --out n --kernel cpu --steps fuzz --time 1s --threads 1"), folder).exit_code, 0);
  for (const char* file : {"n/history.sqlite", "n/junit.xml"})
    expect_refused(folder, std::string("merge n --json ") + file,
                   std::string("dir: '") + file + "' is the file of --json as well; one would replace the other", file);
}

}  // namespace
}  // namespace attest::tools
