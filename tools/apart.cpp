#include "apart.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

#include "attest/fuzz/worker.h"
#include "attest/problem/error.h"
#include "attest/problem/process.h"
#include "program.h"

namespace attest::tools {

ExitCode apart(const std::string& kernel, const std::function<ExitCode()>& work) {
  // a byte that the child sets when it ends by itself: kernels may hold or close any descriptor
  void* const page = ::mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw EnvironmentError(fmt::format("no memory to share: {}", std::strerror(errno)));
  const std::unique_ptr<void, void (*)(void*)> shared(page, [](void* p) { ::munmap(p, 1); });
  volatile char* const through = static_cast<char*>(page);
  std::fflush(stdout);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) throw EnvironmentError(fmt::format("no process for kernel '{}': {}", kernel, std::strerror(errno)));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(exit_interrupted);
    const int status = exit_status_of(work);
    *through = 1;
    ::_exit(status);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  Ended ended;
  if (WIFEXITED(status)) ended.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  if (*through != 0 || ended.exit_status == exit_interrupted) return static_cast<ExitCode>(ended.exit_status);
  throw KernelCrashed(fmt::format("kernel '{}' ended the process that called it: {}", kernel, ended.how()));
}

}  // namespace attest::tools
