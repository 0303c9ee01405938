// What a program that is started has in common, whether it is another one, a worker of ours or Python.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "attest/problem/error.h"

namespace attest {

/// A descriptor of this process, closed with the object. It is above those that children find theirs at, so that giving
/// a child one overwrites none of the others.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int opened);
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return number_; }
  void close();

 private:
  int number_ = -1;
};

/// The two ends of a stream. Throws EnvironmentError.
std::pair<Descriptor, Descriptor> make_socket_pair();
/// "/dev/null". Throws EnvironmentError.
Descriptor open_nothing();

/// Memory of zeros that a child may map, of which only what is written takes any. Throws EnvironmentError.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  /// For the child; the mapping outlives its close().
  Descriptor& descriptor() { return descriptor_; }

 private:
  std::size_t bytes_;
  Descriptor descriptor_;
  std::byte* data_ = nullptr;
};

struct ChildOptions {
  std::vector<std::pair<int, int>> descriptors;                  // {in this process, in the child}
  std::vector<std::pair<std::string, std::string>> environment;  // beside this process's, or in its place
  bool ignores_signals = false;  // SIGINT, SIGTERM and SIGHUP, on which the parent decides; else they end it
  bool own_group = true;         // what it starts ends with it, unless it leaves the group
};

struct ChildEnd {
  int exit_status = -1;  // -1 where a signal ended it
  int signal = 0;
  bool killed = false;  // by end()

  /// "exit status 2", "SIGSEGV".
  std::string how() const;
};

/// There is no such program, or it is none.
class NotExecuted : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// From here on the end of a Child is also that of every process that it started, in whatever session (setsid) and
/// however far removed (a double fork): this process inherits them, kills and reaps them. For programs whose children
/// are all Childs, or were there before; others are taken for orphans. Throws EnvironmentError where it is refused.
void become_subreaper();

/// SIGKILL for each Child and its group; none is reaped. May be called by a signal handler.
void kill_children() noexcept;
/// Likewise, and from here on no Child starts its program, on whatever thread: it is killed first. For a signal
/// handler, before it ends the process.
void end_children() noexcept;

/// A child process: killed with this object, and where the thread ends that made it.
class Child {
 public:
  /// Starts `program`, as execvp() finds it, with nothing on stdin. Throws NotExecuted, and EnvironmentError where
  /// there is no process to be had.
  Child(const std::string& program, std::vector<std::string> words, const ChildOptions& options);
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Until end() its number, which is its group's too, is nobody else's.
  bool has_ended() const;
  /// Gives it `grace_seconds` to end by itself, then kills it with its group, and reaps it, and after
  /// become_subreaper() all that it left behind. Again: the same.
  const ChildEnd& end(double grace_seconds = 0);

 private:
  void wait_for_end(double seconds) const;
  pid_t to_kill() const { return own_group_ ? -pid_ : pid_; }

  pid_t pid_ = -1;
  bool own_group_;
  ChildEnd end_;
};

}  // namespace attest
