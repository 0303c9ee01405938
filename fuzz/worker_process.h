// A worker seen from its parent: its process, its socket and its flight record.
#pragma once
#include <string>

#include "attest/fuzz/in_flight.h"
#include "attest/fuzz/worker.h"
#include "attest/problem/child.h"
#include "wire.h"

namespace attest {

class WorkerProcess {
 public:
  /// Executes the program in a process group of its own, which ends with it. Throws EnvironmentError if it cannot.
  explicit WorkerProcess(const WorkerProgram& program);

  /// To a worker that is gone it goes unheard; receive() tells.
  void send(const wire::Json& message) const { wire::send(socket_.get(), message); }

  enum class Event { message, timeout, gone };
  /// What comes first: a whole message into `message`, `seconds`, or the worker's end with all messages taken.
  Event receive(wire::Json& message, double seconds);

  /// Kills it if it still lives, and says how it ended: "SIGSEGV", "exit status 0".
  std::string end();

  const FlightRecord& record() const { return *record_; }

 private:
  WorkerProcess(const WorkerProgram& program, std::pair<Descriptor, Descriptor> ends);  // ours, the worker's
  bool read_more();  // false at the end of the stream

  SharedMemory memory_;
  FlightRecord* record_;
  Descriptor socket_;
  Child child_;
  wire::Unframer unframer_;
  bool closed_ = false, garbled_ = false;
};

}  // namespace attest
