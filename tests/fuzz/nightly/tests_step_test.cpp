// Which programs a night runs for its `tests`, and what is said of those that are not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "nights.h"
#include "steps.h"

namespace attest {
namespace {

using testing::Contains;
using testing::HasSubstr;

class TestsStep : public InItsOwnFolder {
 protected:
  void SetUp() override {
    InItsOwnFolder::SetUp();
    options.tests = folder.string();
  }
  void add(const std::string& program, const std::string& script) {
    std::ofstream(folder / program) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(folder / program, std::filesystem::perms::owner_all);
  }
  Part run(double seconds = 30) {
    History history((folder / "history").string());
    return tests_step({options, {}, history, {}, seconds});
  }

  NightlyOptions options;
};

constexpr const char* good = "echo '[ RUN      ] S.One'; echo '[       OK ] S.One (3 ms)'\n";

std::string name_of(const std::string& program) { return "tests/" + program; }

TEST_F(TestsStep, SaysEachProgramThatIsNotThere) {
  Part part = run();
  EXPECT_THAT(part.step.note, HasSubstr("no GPU tests in '" + options.tests + "'"));
  for (const std::string& program : gpu_test_programs())
    EXPECT_THAT(part.checks, Contains(testing::FieldsAre(name_of(program), CheckState::skipped,
                                                         "not in '" + options.tests + "'", "", true)));
  add("cuda_kernels_tests", good);
  part = run();
  const std::string missing = part.step.note.substr(0, part.step.note.find("cuda_kernels_tests: 1 passed"));
  for (const std::string& program : gpu_test_programs())
    EXPECT_EQ(missing.find(program) != std::string::npos, program != "cuda_kernels_tests") << part.step.note;
  EXPECT_THAT(part.checks,
              Contains(testing::FieldsAre("tests/cuda_kernels_tests/S.One", CheckState::passed, "", "", true)));
}

TEST_F(TestsStep, RunsEveryProgramThatIsThere) {
  for (const std::string& program : gpu_test_programs()) add(program, good);
  const Part part = run();
  for (const std::string& program : gpu_test_programs())
    EXPECT_THAT(part.checks,
                Contains(testing::FieldsAre(name_of(program), CheckState::passed, "1 passed, 0 failed", "", true)));
  EXPECT_EQ(part.checks.size(), 2 * gpu_test_programs().size());
}

// CTest is asked, which knows of nothing but the labels and of what has been built.
TEST(TestsOfANight, AreThoseThatCTestLabelsGpu) {
  const Ended ended = run_until_stopped({CTEST, "--test-dir", BUILD, "--show-only=json-v1"}, 60);
  ASSERT_TRUE(ended.good()) << ended.out;
  std::set<std::string> labelled;
  const nlohmann::json tests = nlohmann::json::parse(ended.out.substr(ended.out.find('{'))).at("tests");
  for (const nlohmann::json& test : tests) {
    const auto name = test.at("name").get<std::string>();
    for (const nlohmann::json& property : test.at("properties"))
      if (property.at("name") == "LABELS" && property.at("value") == nlohmann::json{"gpu"})
        labelled.insert(name.substr(0, name.find('.')));
  }
  std::set<std::string> built;
  for (const std::string& program : gpu_test_programs())
    if (std::filesystem::exists(std::filesystem::path(BUILD) / "bin" / program)) built.insert(program);
  EXPECT_EQ(built, labelled);
  EXPECT_THAT(labelled, Contains("cuda_kernels_tests"));
}

}  // namespace
}  // namespace attest
