#include "attest/simulator/in_parallel.h"

#include <exception>

namespace attest {

void in_parallel(std::size_t n, const std::function<void(std::size_t)>& work,
                 const std::function<void(std::size_t, std::size_t)>& progress) {
  std::size_t done = 0, failed = n;
  std::exception_ptr first;
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < n; ++i) {
    bool wanted = false;
#pragma omp critical(attest_in_parallel)
    wanted = i < failed;
    if (!wanted) continue;
    std::exception_ptr failure;
    try {
      work(i);
    } catch (...) {
      failure = std::current_exception();
    }
#pragma omp critical(attest_in_parallel)
    {
      if (failure && i < failed) failed = i, first = failure;
      if (progress) progress(++done, n);
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace attest
