// The limits of the operating system on this process, which a kernel under test may lower under attest's feet.
#pragma once
#include <sys/resource.h>

#include <array>
#include <string>

namespace attest {

class ProcessLimits {
 public:
  /// Those of now.
  ProcessLimits();
  /// "RLIMIT_AS: 4096 is below 8192, which it was", of the first that is lower now than it was then; empty where none
  /// is. Puts all of them back as far as the process may.
  std::string restored() const;

 private:
  static constexpr int count = RLIM_NLIMITS;
  std::array<rlimit, count> limits_{};
};

}  // namespace attest
