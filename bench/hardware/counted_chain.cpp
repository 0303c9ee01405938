// What L2 has dirty when launches begin that CUPTI's range profiler counts, and what a launch leaves to the next one:
// CSV to standard output.
//
//     counted_chain > docs/results/h200-l2/counted_chain.csv
#include <cstdint>
#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include "attest/counters/counter_reader.h"
#include "attest/hardware/device.h"
#include "chain.h"

namespace {

using namespace attest;
using hardware::ChainLaunch;
using hardware::DeviceArray;

constexpr std::int64_t kMiB = 1 << 20, kOfLaunch = 512 * kMiB;
constexpr int kRuns = 2;

/// Launches one after the other, each with 512 MiB of its own, of which it reads the first half and writes the second.
class Chain : public CountedWork {
 public:
  Chain(std::vector<ChainLaunch> launches, DeviceArray<std::uint8_t>& buffer)
      : launches_(std::move(launches)), buffer_(buffer) {}
  void launch() override {
    std::int64_t at = kOfLaunch;
    for (const ChainLaunch& l : launches_) {
      hardware::launch_chained(l, buffer_.data() + at, buffer_.data() + at + kOfLaunch / 2);
      at += kOfLaunch;
    }
  }
  void wait() override { hardware::check(cudaDeviceSynchronize()); }
  void empty_l2() override {
    hardware::launch_chained({.read = 120 * kMiB}, buffer_.data(), nullptr);
    wait();
  }

 private:
  std::vector<ChainLaunch> launches_;
  DeviceArray<std::uint8_t>& buffer_;
};

class Table {
 public:
  Table() : buffer_((1 + kMostLaunches) * kOfLaunch), reader_({"dram__bytes_read.sum", "dram__bytes_write.sum"}) {
    std::printf("name,launches,launch,read_mib,write_mib,wait_us,dram__bytes_read.sum,dram__bytes_write.sum\n");
  }
  void row(const char* name, const std::vector<ChainLaunch>& launches) {
    for (int run = 0; run < kRuns; ++run) {
      Chain chain(launches, buffer_);
      const std::vector<LaunchCounters> counted = reader_.read(chain, false);
      for (std::size_t i = 0; i < counted.size(); ++i)
        std::printf("%s,%zu,%zu,%lld,%lld,%d,%.0f,%.0f\n", name, launches.size(), i,
                    static_cast<long long>(launches[i].read / kMiB), static_cast<long long>(launches[i].write / kMiB),
                    launches[i].wait_us, counted[i].values.at("dram__bytes_read.sum"),
                    counted[i].values.at("dram__bytes_write.sum"));
    }
  }

 private:
  static constexpr int kMostLaunches = 8;
  DeviceArray<std::uint8_t> buffer_;
  CounterReader reader_;
};

void measure() {
  Table table;
  const ChainLaunch short_read{.read = 2 * kMiB}, long_read{.read = 128 * kMiB}, write{.write = 16 * kMiB};
  for (const std::int64_t mib : {0, 8, 16, 24, 32, 40, 48, 64, 128, 256}) table.row("read", {{.read = mib * kMiB}});
  for (const int us : {10, 100, 1000, 5000}) {
    table.row("write_wait", {{.write = 8 * kMiB, .wait_us = us}});
    table.row("read_wait", {{.read = 128 * kMiB, .wait_us = us}});
  }
  for (const std::size_t launches : {2, 3, 4, 8}) table.row("reads", std::vector(launches, long_read));
  table.row("last_reads", {short_read, long_read});
  table.row("last_reads", {short_read, short_read, long_read});
  table.row("written_before", {write, long_read});
  table.row("written_before", {write, write, write, long_read});
  for (const std::int64_t mib : {2, 4, 8, 12, 16, 20, 24, 28, 32, 48}) {
    table.row("write", {{.write = mib * kMiB}});
    for (const std::int64_t read : {24, 48}) table.row("write_and_read", {{.read = read * kMiB, .write = mib * kMiB}});
  }
}

}  // namespace

int main() try {
  measure();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "counted_chain: %s\n", error.what());
  return 1;
}
