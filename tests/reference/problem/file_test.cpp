#include "attest/problem/file.h"

#include <gtest/gtest.h>

#include <string>

#include "attest/problem/error.h"

namespace attest {
namespace {

// The 57 bytes that a message shows of a name end between its characters.
TEST(File, NamesAreCutBeforeACharacter) {
  const auto said = [](const std::string& name) -> std::string {
    try {
      (void)read_file("plan", name, 1);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "read";
  };
  const std::string to_56(56, 'a'), to_55(55, 'a');
  EXPECT_EQ(said(to_55 + "\xc3\xa9" + "b.json"), "plan: '" + to_55 + "\xc3\xa9...' does not exist");
  EXPECT_EQ(said(to_56 + "\xc3\xa9" + "b.json"), "plan: '" + to_56 + "...' does not exist");
  EXPECT_EQ(said(to_55 + "\xf0\x9f\x98\x80.json"), "plan: '" + to_55 + "...' does not exist");
}

}  // namespace
}  // namespace attest
