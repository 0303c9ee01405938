#include "output.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "run_attest.h"

namespace attest::tools {
namespace {

// The device that a panel was measured on gives its name to a file in the folder of --out.
TEST(OutputFile, ANameInAFolderIsNoFolder) {
  const Folder folder;
  CLI::App app("test", "test");
  Flags flags(app);
  flags.value("--out", "PATH", "");
  app.parse({folder.path().string(), "--out"});  // CLI11 takes a vector from its end
  const auto file = output_file(flags, "--out", "NVIDIA H200/NVL_panel.csv");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->path(), std::filesystem::path(folder.path()) / "NVIDIA H200_NVL_panel.csv");
}

}  // namespace
}  // namespace attest::tools
