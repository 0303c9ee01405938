// Runs the experiments that are named, and writes DIR/NAME.rows.csv for each: what each launch of it was. run.py runs
// it under ncu and puts the counters beside the rows.
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "attest/hardware/device.h"
#include "experiments.h"
#include "page_lists.h"

namespace {

using namespace attest::hardware;

std::vector<Experiment> all_experiments() {
  std::vector<Experiment> all;
  for (auto* list : {&write_experiments, &read_experiments, &displace_experiments, &crossing_experiments,
                     &head_experiments, &respill_experiments, &merge_experiments, &placement_experiments})
    for (Experiment& e : (*list)()) all.push_back(std::move(e));
  return all;
}

constexpr std::int64_t kBytesWithKnownHome = 512 * kMiB;

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Experiment> experiments = all_experiments();
  if (argc < 3) {
    std::fprintf(stderr, "usage: l2_probe DIR EXPERIMENT...\n");
    for (const Experiment& e : experiments) std::fprintf(stderr, "  %s\n", e.name.c_str());
    return 2;
  }
  try {
    const std::vector<SmPlace> sms = locate_sms();
    for (int i = 2; i < argc; ++i) {
      bool found = false;
      for (const Experiment& e : experiments) {
        if (e.name != argv[i]) continue;
        found = true;
        std::ofstream rows(std::string(argv[1]) + "/" + e.name + ".rows.csv");
        rows << e.columns << '\n';
        const DeviceArray<std::uint8_t> buffer(static_cast<std::size_t>(e.buffer_bytes));
        e.run({.buffer = buffer.data(),
               .sms = sms,
               .homes = page_homes(buffer.data(), kBytesWithKnownHome, sms),
               .rows = &rows});
      }
      if (!found) throw std::runtime_error(std::string("no experiment ") + argv[i]);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "l2_probe: %s\n", error.what());
    return 1;
  }
  return 0;
}
