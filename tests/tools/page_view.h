// Pages of `--html` as a headless browser sees them.
#pragma once
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run_attest.h"

namespace attest::tools {

/// The path of a Chromium; "" where there is none.
std::string browser();
std::string file(const std::string& path);

/// What page_check.js sees of each page in `folder`, at each of `widths`, in pixels.
std::vector<nlohmann::json> seen(const Folder& folder, const std::vector<std::string>& pages,
                                 const std::vector<int>& widths = {390, 1920});

/// Every mark of every chart says on hover how its figure is made, and no line of a table or card ends within a word.
void expect_legible(const nlohmann::json& page);
/// No errors, nothing wider than its window, cut, misplaced or loaded from elsewhere.
void expect_whole(const nlohmann::json& page);

class Page : public testing::Test {
 protected:
  void SetUp() override {
    if (browser().empty()) GTEST_SKIP() << "no browser here; tools/setup.sh test installs chromium";
  }
  void predict(const std::string& page, std::vector<std::string> arguments) {
    make("predict", page, std::move(arguments));
  }
  void make(const std::string& command, const std::string& page, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {command, "--html", page});
    const Ran ran = run_attest(arguments, folder);
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
  }
  Folder folder;
};

}  // namespace attest::tools
