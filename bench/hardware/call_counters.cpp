// Any counters of calls, through CUPTI, cold: CSV to standard output.
//
//     call_counters METRIC,METRIC,... KERNEL CASE...        a case as canonical JSON
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "attest/counters/counter_reader.h"
#include "attest/counters/device_call.h"
#include "attest/fuzz/device_forwards.h"

namespace {

using namespace attest;

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream in(list);
  for (std::string name; std::getline(in, name, ',');) names.push_back(name);
  return names;
}

void count(const std::vector<std::string>& metrics, const std::string& kernel, const std::string& text) {
  DeviceMemory memory;
  DeviceCall call(make_device_forward(kernel), case_from_json_text(text), memory);
  CounterReader reader(metrics);
  for (const LaunchCounters& launch : reader.read(call, false))
    for (const std::string& metric : metrics)
      std::printf("%s,%s,%.0f\n", kernel.c_str(), metric.c_str(), launch.values.at(metric));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) return std::fprintf(stderr, "usage: call_counters METRIC,METRIC,... KERNEL CASE...\n"), 2;
  for (int i = 3; i < argc; ++i) {
    std::printf("# %s\n", argv[i]);
    count(split(argv[1]), argv[2], argv[i]);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "call_counters: %s\n", error.what());
  return 1;
}
