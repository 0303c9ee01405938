#include "attest/problem/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
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

// Its size is 0 beforehand, and reading it would wait for the system's next line.
TEST(File, IsNotWaitedFor) {
  const int log = ::open("/proc/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (log < 0) GTEST_SKIP() << "no /proc/kmsg here";
  ::close(log);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW((void)read_file("case", "/proc/kmsg", 1), InvalidInput);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(File, OfNoSizeHasNoMoreThanTheLimit) {
  EXPECT_THROW((void)read_file("case", "/proc/self/status", 10), InvalidInput);
  EXPECT_GT(read_file("case", "/proc/self/status", 1u << 20).size(), 10u);
}

}  // namespace
}  // namespace attest
