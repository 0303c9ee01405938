#include "attest/problem/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

namespace attest {
namespace {

[[noreturn]] void cannot(std::string_view what) {
  throw EnvironmentError(fmt::format("{}: {}", what, std::strerror(errno)));
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> variables_with(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable) variables.emplace_back(*variable);
  for (const auto& [name, value] : changes) {
    std::erase_if(variables, [set = name + "="](const std::string& v) { return v.starts_with(set); });
    variables.push_back(fmt::format("{}={}", name, value));
  }
  return variables;
}

// The children that are not to be ended as somebody's orphans. The lock is held while one is started or orphans are
// looked for, so that none is met before it stands here.
struct Family {
  std::mutex mutex;
  bool adopts = false;
  std::set<pid_t> known;
};
Family& family() {
  static Family family;
  return family;
}

// The same children for a signal handler, which may wait for no lock: their numbers as kill() takes them, 0 for none.
constexpr std::size_t most_listed = 4096;  // more than a machine has workers; a handler would pass over further ones
std::array<std::atomic<pid_t>, most_listed> listed{};
// Set before they are killed: a child that a handler has not met in the list is killed by the thread that has put it
// there, which looks here next. Either comes first, as all threads see these in one order.
std::atomic<bool> ended_for_good{false};
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void replace_listed(pid_t before, pid_t after) {
  for (std::atomic<pid_t>& place : listed)
    if (pid_t there = before; place.compare_exchange_strong(there, after)) return;
}

// "17 (a (strange) name) S 4 ...": the number behind the state.
pid_t parent_in(std::string_view stat) {
  const std::size_t name_end = stat.rfind(')');
  constexpr std::size_t to_parent = 4;  // ") S "
  pid_t parent = -1;
  if (name_end != std::string::npos && name_end + to_parent < stat.size())
    std::from_chars(stat.data() + name_end + to_parent, stat.data() + stat.size(), parent);
  return parent;
}

std::vector<pid_t> children_of_this_process() {
  std::vector<pid_t> children;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    pid_t pid = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size()) continue;
    std::ifstream file(at->path() / "stat");
    std::array<char, 4096> stat{};  // read() is told of a process that ends here, where an iterator would throw
    file.read(stat.data(), stat.size());
    if (parent_in({stat.data(), static_cast<std::size_t>(file.gcount())}) == ::getpid()) children.push_back(pid);
  }
  return children;
}

// A process that a driver holds may outlive SIGKILL for long; then it is left to whoever inherits it.
constexpr double longest_end_seconds = 10;

// Kills what this process inherited from children that have ended, and what it inherits by that in turn.
void end_orphans() {
  constexpr int look_every_ms = 1;
  for (double waited = 0;; waited += 1e-3 * look_every_ms) {
    {
      const std::lock_guard lock(family().mutex);
      if (!family().adopts) return;
      std::vector<pid_t> orphans = children_of_this_process();
      std::erase_if(orphans, [](pid_t child) { return family().known.contains(child); });
      if (orphans.empty()) return;
      for (const pid_t orphan : orphans) {
        ::kill(orphan, SIGKILL);
        ::waitpid(orphan, nullptr, WNOHANG);
        if (waited >= longest_end_seconds) family().known.insert(orphan);
      }
    }
    ::poll(nullptr, 0, look_every_ms);
  }
}

// In the child: only what a signal handler may call. It begins when the parent, which has listed it by then, says so;
// what is wrong goes there, where it is read until exec closes.
[[noreturn]] void become(const char* program, char* const* argv, char* const* environment, const ChildOptions& options,
                         int nothing, int to_parent, pid_t parent, bool adopts) {
  if (options.own_group) ::setpgid(0, 0);
  // What it leaves in sessions of their own comes to the parent when it ends, and not among what others left before.
  if (adopts) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it ended before that was set
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, options.ignores_signals ? SIG_IGN : SIG_DFL);
  char begin = 0;
  ssize_t heard = 0;
  while ((heard = ::recv(to_parent, &begin, 1, 0)) < 0 && errno == EINTR) {
  }
  if (heard != 1) ::_exit(127);
  ::dup2(nothing, STDIN_FILENO);
  for (const auto& [here, there] : options.descriptors)
    if (::dup2(here, there) < 0) ::close(there);
  ::execvpe(program, argv, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(to_parent, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

Descriptor::Descriptor(int opened) : number_(opened) {
  constexpr int low = 10;
  if (opened < 0 || opened >= low) return;
  number_ = ::fcntl(opened, F_DUPFD_CLOEXEC, low);
  const int error = errno;
  ::close(opened);
  errno = error;
  if (number_ < 0) cannot("no descriptor");
}

void Descriptor::close() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

std::pair<Descriptor, Descriptor> make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) cannot("no socket");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Descriptor open_nothing() {
  Descriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (nothing.get() < 0) cannot("/dev/null");
  return nothing;
}

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(bytes), descriptor_(::memfd_create("attest", MFD_CLOEXEC)) {
  if (descriptor_.get() < 0 || ::ftruncate(descriptor_.get(), static_cast<off_t>(bytes)) != 0)
    cannot("no shared memory");
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_.get(), 0);
  if (mapped == MAP_FAILED) cannot("no shared memory");
  data_ = static_cast<std::byte*>(mapped);
}

SharedMemory::~SharedMemory() { ::munmap(data_, bytes_); }

void become_subreaper() {
  const std::lock_guard lock(family().mutex);
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) cannot("no subreaper");
  family().adopts = true;
  for (const pid_t child : children_of_this_process()) family().known.insert(child);
}

void kill_children() noexcept {
  for (const std::atomic<pid_t>& place : listed)
    if (const pid_t child = place; child != 0) ::kill(child, SIGKILL);
}

void end_children() noexcept {
  ended_for_good = true;
  kill_children();
}

std::string ChildEnd::how() const {
  if (signal == 0) return fmt::format("exit status {}", exit_status);
  const char* const name = ::sigabbrev_np(signal);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

Child::Child(const std::string& program, std::vector<std::string> words, const ChildOptions& options)
    : own_group_(options.own_group) {
  std::vector<std::string> variables = variables_with(options.environment);
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);
  const Descriptor nothing = open_nothing();
  auto [to_child, to_parent] = make_socket_pair();
  const pid_t parent = ::getpid();
  {
    const std::lock_guard lock(family().mutex);
    pid_ = ::fork();
    if (pid_ == 0)
      become(program.c_str(), argv.data(), envp.data(), options, nothing.get(), to_parent.get(), parent,
             family().adopts);
    if (pid_ > 0) family().known.insert(pid_);
  }
  if (pid_ < 0) cannot(fmt::format("no process for '{}'", program));
  if (own_group_) ::setpgid(pid_, pid_);  // whoever is first
  replace_listed(0, to_kill());
  to_parent.close();
  if (ended_for_good)
    ::kill(to_kill(), SIGKILL);
  else
    ::send(to_child.get(), "", 1, MSG_NOSIGNAL);
  int error = 0;
  ssize_t got = 0;
  while ((got = ::read(to_child.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (got != sizeof error) return;
  end();
  throw NotExecuted(fmt::format("'{}' cannot be executed: {}", program, std::strerror(error)));
}

bool Child::has_ended() const {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
    return errno == ECHILD;  // where SIGCHLD is ignored nothing is kept of a child that has ended
  return info.si_pid == pid_;
}

void Child::wait_for_end(double seconds) const {
  constexpr int look_every_ms = 10;
  for (double waited = 0; waited < seconds && !has_ended(); waited += 1e-3 * look_every_ms)
    ::poll(nullptr, 0, look_every_ms);
}

const ChildEnd& Child::end(double grace_seconds) {
  if (pid_ < 0) return end_;
  wait_for_end(grace_seconds);
  end_.killed = !has_ended();
  ::kill(to_kill(), SIGKILL);
  wait_for_end(longest_end_seconds);
  replace_listed(to_kill(), 0);  // before its number may be another's
  int status = 0;
  {
    const std::lock_guard lock(family().mutex);
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      family().known.erase(pid_);
      if (WIFEXITED(status)) end_.exit_status = WEXITSTATUS(status);
      if (WIFSIGNALED(status)) end_.signal = WTERMSIG(status);
    } else {
      end_.signal = SIGKILL;
    }
  }
  pid_ = -1;
  end_orphans();
  return end_;
}

}  // namespace attest
