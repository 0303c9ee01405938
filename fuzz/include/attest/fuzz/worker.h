// A worker: a process that runs the kernel under test, so that its crash or hang is a finding and not the end.
//
// A worker is a program that is executed anew, never a fork that goes on: the parent has threads and OpenMP's pool, and
// a CUDA context does not survive fork(). The built-in program executes itself.
#pragma once
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attest/gpu/kernel.h"

namespace attest {

/// How a worker is started. The program must call serve_worker() and nothing before it that takes long.
struct WorkerProgram {
  std::string path = "/proc/self/exe";  // this program, even if its file was replaced meanwhile
  std::vector<std::string> arguments = {"__worker"};
  double load_seconds = 60;  // making the kernel there that takes longer hangs
};

/// The kernel's own construction brought the worker down, or had no end: there is no case to blame.
class KernelCrashed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using KernelByName = std::function<std::unique_ptr<Kernel>(std::string_view)>;

/// The worker's main: judges what the parent sends until the parent is gone, and returns the exit status. Its stdout is
/// its stderr, so that a kernel that prints disturbs nobody; SIGINT, SIGTERM and SIGHUP are left to the parent.
int serve_worker(const KernelByName& make_kernel);

}  // namespace attest
