#include "paths.h"

#include <gtest/gtest.h>

#include "run_attest.h"

namespace attest::tools {
namespace {

namespace fs = std::filesystem;

TEST(Paths, AFullPathIsWithoutLinks) {
  const Folder folder;
  const fs::path root = fs::canonical(folder.path());
  folder.write("file", "x");
  fs::create_symlink("file", root / "link");
  fs::create_symlink(".", root / "here");
  fs::create_symlink("loop", root / "loop");
  for (const char* name : {"file", "link", "here/link", "none/../file"})
    EXPECT_EQ(full_path(root / name), root / "file");
  EXPECT_EQ(full_path(root / "here/none"), root / "none");
  EXPECT_EQ(full_path(root / "loop"), "");
  EXPECT_EQ(full_path("file"), fs::current_path() / "file");
  EXPECT_EQ(full_path("/proc/self/exe").filename(), "tools_test");
}

TEST(Paths, NamesOfOneFile) {
  const Folder folder;
  const fs::path& root = folder.path();
  folder.write("file", "x");
  folder.write("other", "x");
  fs::create_hard_link(root / "file", root / "hard");
  fs::create_symlink("loop", root / "loop");
  EXPECT_TRUE(are_one(root / "file", root / "hard"));
  EXPECT_TRUE(are_one(root / "none", root / "." / "none"));
  EXPECT_FALSE(are_one(root / "file", root / "other"));
  EXPECT_FALSE(are_one(root / "file", root / "none"));
  EXPECT_FALSE(are_one(root / "loop", root / "loop")) << "it is none";
}

}  // namespace
}  // namespace attest::tools
