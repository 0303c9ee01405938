// A worker seen from its parent: its process, its socket and its flight record.
#pragma once
#include <sys/types.h>

#include <string>

#include "attest/fuzz/in_flight.h"
#include "attest/fuzz/worker.h"
#include "wire.h"

namespace attest {

class WorkerProcess {
 public:
  /// Executes the program in a process group of its own. Throws EnvironmentError if it cannot.
  explicit WorkerProcess(const WorkerProgram& program);
  /// Ends the worker and its group.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// To a worker that is gone it goes unheard; receive() tells.
  void send(const wire::Json& message) const { wire::send(socket_, message); }

  enum class Event { message, timeout, gone };
  /// What comes first: a whole message into `message`, `seconds`, or the worker's end with all messages taken.
  Event receive(wire::Json& message, double seconds);

  /// Kills it if it still lives, and says how it ended: "SIGSEGV", "exit status 0".
  std::string end();

  const FlightRecord& record() const { return *record_; }

 private:
  bool read_more();  // false at the end of the stream
  bool exited() const;

  pid_t pid_ = -1;
  int socket_ = -1;
  FlightRecord* record_ = nullptr;
  wire::Unframer unframer_;
  bool closed_ = false, garbled_ = false;
  std::string ending_;
};

}  // namespace attest
