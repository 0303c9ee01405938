#include "python_process.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "attest/gpu/kernel_adapter.h"
#include "attest/gpu/run_place.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

// The descriptors that the child finds its own at.
constexpr int socket_descriptor = 3, memory_descriptor = 4;

struct Request {
  std::int32_t call, reserved;
};
struct Reply {
  std::int32_t status, reserved;
  std::int64_t base;  // where the child has the shared memory
};
constexpr std::int32_t batch_done = -1;  // in place of an attest_status: the answer is still to come

std::string attest_py() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  const auto path = program.parent_path().parent_path() / "share" / "attest" / "attest.py";
  if (!std::filesystem::exists(path))
    throw EnvironmentError(fmt::format("python: '{}' is not there; it is installed beside attest", path.string()));
  return path.string();
}

std::string interpreter() {
  const char* const chosen = std::getenv("ATTEST_PYTHON");
  return chosen != nullptr && *chosen != '\0' ? chosen : "python3";
}

// In the group of this process, so that it ends with the worker.
std::unique_ptr<Child> start(const std::string& file, const std::string& function, const Descriptor& socket,
                             SharedMemory& memory) {
  ChildOptions options;
  options.descriptors = {{STDERR_FILENO, STDOUT_FILENO},  // stdout is for results
                         {socket.get(), socket_descriptor},
                         {memory.descriptor().get(), memory_descriptor}};
  options.ignores_signals = true;
  options.own_group = false;
  const std::string python = interpreter();
  try {
    return std::make_unique<Child>(python, std::vector<std::string>{python, attest_py(), file, function}, options);
  } catch (const NotExecuted& error) {
    throw EnvironmentError(fmt::format("python: {}; $ATTEST_PYTHON names another", error.what()));
  }
}

bool send_all(int socket, const void* bytes, std::size_t count) {
  return ::send(socket, bytes, count, MSG_NOSIGNAL) == static_cast<ssize_t>(count);
}

bool receive_all(int socket, void* bytes, std::size_t count) {
  for (std::size_t got = 0; got < count;) {
    const ssize_t more = ::recv(socket, static_cast<char*>(bytes) + got, count - got, 0);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return false;
    got += static_cast<std::size_t>(more);
  }
  return true;
}

}  // namespace

PythonProcess::PythonProcess(const std::string& file, const std::string& function) : memory_(shared_bytes) {
  control().struct_size = sizeof(Control);
  auto [ours, theirs] = make_socket_pair();
  child_ = start(file, function, theirs, memory_);
  socket_ = std::move(ours);
  memory_.descriptor().close();
}

PythonProcess::~PythonProcess() { end(); }

std::int32_t PythonProcess::call(PythonCall what) {
  control().message[0] = '\0';
  const Request request{static_cast<std::int32_t>(what), 0};
  Reply reply{};
  bool heard = send_all(socket_.get(), &request, sizeof request);
  while (heard && (heard = receive_all(socket_.get(), &reply, sizeof reply)) && reply.status == batch_done)
    tell_end_of_batch();
  if (!heard) throw plugin::Lost(fmt::format("python {}", end()));
  child_base_ = static_cast<std::uintptr_t>(reply.base);
  control().message[sizeof(Control::message) - 1] = '\0';
  return reply.status;
}

std::string PythonProcess::end() {
  ::shutdown(socket_.get(), SHUT_RDWR);
  // Whoever closed its end is about to end by itself; how it does so is what the user wants to know.
  constexpr double grace_seconds = 1;
  const ChildEnd& ended = child_->end(grace_seconds);
  if (ended.killed) return "was ended by attest";
  return fmt::format("ended {} {}", ended.signal == 0 ? "with" : "by", ended.how());
}

}  // namespace attest
