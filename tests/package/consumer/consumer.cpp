#include <attest/problem/error.h>
#include <attest/problem/problem.h>

#include <cstdio>

int main() {
  attest::Problem problem;
  problem.seqlen_q = -5;
  try {
    attest::validate(problem);
  } catch (const attest::InvalidInput& error) {
    std::puts(error.what());
    return 0;
  }
  return 1;
}
