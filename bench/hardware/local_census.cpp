// How many lines of local memory, or their copies, lie in a set of L2, set by set. CSV to standard output.
//
//     local_census 40 > docs/results/h100/local_census.csv        for so many seconds
//     local_census 40 2048                                        of a process with that stack limit
#include "attest/hardware/local_census.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <vector>

#include "attest/hardware/device.h"

int main(int argc, char** argv) try {
  using namespace attest::hardware;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 40;
  if (!(seconds > 0)) return std::fprintf(stderr, "local_census: seconds: %s must be above 0\n", argv[1]), 2;
  if (argc > 2) check(cudaDeviceSetLimit(cudaLimitStackSize, std::strtoul(argv[2], nullptr, 10)));
  LocalCensus census(std::random_device{}());
  std::vector<int> words{0};
  words.insert(words.end(), LocalCensus::told_apart.begin(), LocalCensus::told_apart.end());
  std::printf("set,words,lines\n");
  const auto began = std::chrono::steady_clock::now();
  for (int set = 0; std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() < seconds; ++set) {
    const std::vector<int> lines = census.next_set(words);
    for (std::size_t i = 0; i < words.size(); ++i) std::printf("%d,%d,%d\n", set, words[i], lines[i]);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "local_census: %s\n", error.what());
  return 1;
}
