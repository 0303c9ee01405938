#include "attest/problem/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace attest {
namespace {

using testing::ElementsAre;

std::vector<std::string> lines_of(const std::vector<std::string>& pieces) {
  std::vector<std::string> all;
  Lines lines([&](std::string_view line) { all.emplace_back(line); });
  for (const std::string& piece : pieces) lines.add(piece);
  lines.end();
  return all;
}

TEST(Lines, AreTheSameHoweverTheyCome) {
  const std::string text = "a\n\nbc\nd";
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_THAT(lines_of({text.substr(0, cut), text.substr(cut)}), ElementsAre("a", "", "bc", "d")) << cut;
  EXPECT_THAT(lines_of({"a\n"}), ElementsAre("a"));
  EXPECT_THAT(lines_of({}), ElementsAre());
}

// In one piece or in many, with an end of its own and without.
TEST(Lines, OneThatIsTooLongIsRefused) {
  const std::string longest(Lines::most_bytes, 'x');
  EXPECT_THAT(lines_of({longest + "\n", longest}), ElementsAre(longest, longest));
  for (const std::vector<std::string>& pieces :
       {std::vector{longest + "x"}, {longest + "x\n"}, {"a\n", longest, "x"}, {"a\n" + longest, "x\nb"}}) {
    try {
      lines_of(pieces);
      ADD_FAILURE() << "it was taken";
    } catch (const std::length_error& error) {
      EXPECT_STREQ(error.what(), "a line of more than 1048576 bytes");
    }
  }
}

}  // namespace
}  // namespace attest
