// What is common to programs that are started: their descriptors, their end, and what is told where there is none.
#include "attest/problem/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "goes.h"

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

// A shell with descendants in sessions of their own, one of them an orphan, that all hold the other end of a socket.
class WithDaemons {
 public:
  explicit WithDaemons(const std::string& afterwards) {
    auto [ours, theirs] = make_socket_pair();
    ours_ = std::move(ours);
    ChildOptions options;
    options.descriptors = {{theirs.get(), 3}};
    const std::string daemon = "setsid sh -c '(setsid sleep 60 &) ; printf x >&3; sleep 60' &";
    child = std::make_unique<Child>("sh", shell("(" + daemon + ") ; exec 3>&-; " + afterwards), options);
    char begun = 0;
    EXPECT_EQ(::recv(ours_.get(), &begun, 1, 0), 1);
  }
  // Nobody holds the other end any more.
  bool all_ended(double seconds) const {
    pollfd ready{ours_.get(), POLLIN, 0};
    char byte = 0;
    return ::poll(&ready, 1, static_cast<int>(1e3 * seconds)) == 1 && ::recv(ours_.get(), &byte, 1, 0) == 0;
  }

  std::unique_ptr<Child> child;

 private:
  Descriptor ours_;
};

TEST(Child, WhatItStartedInSessionsOfTheirOwnEndsWithItAndNobodyElses) {
  become_subreaper();
  const pid_t stranger = ::fork();  // as one that was there before a program became attest
  if (stranger == 0) ::pause(), ::_exit(0);
  become_subreaper();
  const WithDaemons other("sleep 60");
  for (const char* const afterwards : {"sleep 60", "exit 0"}) {  // killed, and ended by itself before
    const WithDaemons family(afterwards);
    EXPECT_FALSE(family.all_ended(0.1)) << afterwards;
    family.child->end(afterwards[0] == 'e' ? 5 : 0);
    EXPECT_TRUE(family.all_ended(0)) << afterwards << ": end() has waited for them";
  }
  EXPECT_FALSE(other.all_ended(0.1)) << "they are of one that still runs";
  other.child->end();
  EXPECT_TRUE(other.all_ended(0));
  EXPECT_EQ(::kill(stranger, SIGKILL), 0);
  EXPECT_EQ(::waitpid(stranger, nullptr, 0), stranger);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

// As a signal handler has it: with its group, and nobody who has ended before, whose number may be another's.
TEST(Child, AreAllKilledTogether) {
  auto [ours, theirs] = make_socket_pair();
  ChildOptions options;
  options.descriptors = {{theirs.get(), 1}};
  Child first("sh", shell("sleep 60 & echo $!; wait"), options), second("sleep", {"sleep", "60"}, {});
  Child("true", {"true"}, {}).end(5);
  char pid[16] = {};
  ASSERT_GT(::recv(ours.get(), pid, sizeof pid - 1, 0), 0);
  kill_children();
  EXPECT_TRUE(goes(std::string(pid, std::strcspn(pid, "\n"))));
  for (Child* const child : {&first, &second}) {
    EXPECT_EQ(child->end(5).how(), "SIGKILL");
    EXPECT_FALSE(child->end().killed) << "it had been before";
  }
}

// Whose places in the handler's list are free again: of more than it has, the one that comes next is in it.
TEST(Child, IsKilledHoweverManyHaveEndedBefore) {
  constexpr int places = 4096, num_threads = 16;
  std::vector<std::jthread> threads(num_threads);  // each end is waited for by looks 10 ms apart
  for (std::jthread& thread : threads)
    thread = std::jthread([] {
      for (int i = 0; i <= places / num_threads; ++i) Child("true", {"true"}, {}).end();
    });
  threads.clear();
  Child last("sleep", {"sleep", "60"}, {});
  kill_children();
  EXPECT_EQ(last.end(5).how(), "SIGKILL");
  EXPECT_FALSE(last.end().killed) << "it had been before";
}

// As a thread may find it that is about to start one while a handler ends the process.
TEST(Child, StartsNoProgramOnceChildrenAreEnded) {
  const std::string begun = testing::TempDir() + "attest_child_has_begun";
  std::filesystem::remove(begun);
  const auto child_after_it = [&] {
    end_children();
    Child late("sh", shell("touch " + begun), {});
    std::_Exit(late.end(5).how() == "SIGKILL" ? 0 : 1);
  };
  EXPECT_EXIT(child_after_it(), testing::ExitedWithCode(0), "");
  EXPECT_FALSE(std::filesystem::exists(begun));
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
