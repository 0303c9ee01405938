// What is common to programs that are started: their descriptors, their end, and what is told where there is none.
#include "attest/problem/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

namespace attest {
namespace {

std::vector<std::string> shell(const std::string& script) { return {"sh", "-c", script}; }

TEST(Child, FindsItsDescriptorsWhereItIsToldAndNothingOnStdin) {
  auto [ours, theirs] = make_socket_pair();
  SharedMemory memory(64);
  ChildOptions options;
  options.descriptors = {{theirs.get(), 3}, {memory.descriptor().get(), 4}, {theirs.get(), 1}};
  Child child("sh", shell("printf shared >&4; cat; printf said >&3; printf out"), options);
  theirs.close();
  std::string heard;
  char bytes[16];
  for (ssize_t got = 0; (got = ::recv(ours.get(), bytes, sizeof bytes, 0)) > 0;)
    heard.append(bytes, static_cast<std::size_t>(got));
  EXPECT_EQ(heard, "saidout");
  EXPECT_STREQ(reinterpret_cast<const char*>(memory.data()), "shared");
  EXPECT_EQ(child.end(5).how(), "exit status 0");
}

TEST(Child, EndsByItselfWithinItsGraceAndIsKilledAfterIt) {
  Child late("sh", shell("sleep 0.2; exit 7"), {});
  EXPECT_FALSE(late.has_ended());
  EXPECT_EQ(late.end(10).exit_status, 7);
  EXPECT_FALSE(late.end().killed);
  Child never("sleep", {"sleep", "60"}, {});
  EXPECT_TRUE(never.end(0.05).killed);
  EXPECT_EQ(never.end().how(), "SIGKILL") << "again the same";
}

TEST(Child, HasEndedAlsoWhereNothingIsKeptOfChildren) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  Child child("true", {"true"}, {});
  for (int look = 0; look < 1000 && !child.has_ended(); ++look) ::usleep(1000);
  EXPECT_TRUE(child.has_ended());
  ::signal(SIGCHLD, before);
}

TEST(Child, SignalsAreTheParentsWhereItSaysSo) {
  ChildOptions options;
  options.ignores_signals = true;
  EXPECT_EQ(Child("sh", shell("kill -TERM $$; exit 3"), options).end(10).how(), "exit status 3");
  EXPECT_EQ(Child("sh", shell("kill -TERM $$; exit 3"), {}).end(10).how(), "SIGTERM");
}

TEST(Child, WhatCannotBeExecutedIsSaid) {
  try {
    const Child none("/no/such/program", {"program"}, {});
    FAIL();
  } catch (const NotExecuted& error) {
    EXPECT_STREQ(error.what(), "'/no/such/program' cannot be executed: No such file or directory");
  }
}

}  // namespace
}  // namespace attest
