// Where local memory lies: what is written back of frames that are stored and loaded again and again, beside the same
// lines of global memory at some strides, counted through CUPTI. CSV to standard output.
//
//     local_places [BYTES]         with cudaLimitStackSize set to so many first
//     local_places sets            frames that are stored once and loaded in each turn, beside a range that fills all
//                                  sets evenly: sets that have more of the frames' lines than it leaves ways for miss
//     local_places lags            frames beside heads whose tiles half of the CTAs read once, and the others so many
//                                  turns later: what L2 has evicted by then is read again
//     local_places bursts          frames whose words go one by one, near each other or apart in time, loaded or not
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "attest/counters/counter_reader.h"
#include "attest/hardware/device.h"
#include "respill.h"

namespace {

using namespace attest;
using hardware::check;
using hardware::Respill;
using hardware::Store;

constexpr std::int64_t kKiB = 1 << 10, kMiB = 1 << 20;
constexpr std::int64_t kSpilled = 512 * kMiB, kOthers = 3000 * kMiB, kBytes = 3200 * kMiB;
constexpr int kTurns = 64, kRuns = 2, kHeads = 8;

class Stored : public CountedWork {
 public:
  Stored(const Respill& respill, std::uint8_t* buffer) : respill_(respill), buffer_(buffer) {}
  void launch() override { hardware::run_respill(respill_, buffer_, kSpilled); }
  void wait() override { check(cudaDeviceSynchronize()); }
  void empty_l2() override {  // 40 MiB, the first quarter of 8 heads
    hardware::run_respill({.store = Store::global, .turns = 160, .shared_bytes = 160 * kMiB}, buffer_ + kOthers, 0);
    wait();
  }

 private:
  Respill respill_;
  std::uint8_t* buffer_;
};

void measure(const char* stack_limit) {
  const hardware::DeviceArray<std::uint8_t> buffer(kBytes);
  CounterReader reader({"dram__bytes_read.sum", "dram__bytes_write.sum"});
  std::printf("stack_limit,how,words,behind,shared_mib,sm_kib,warp_kib,dram_read_mb,dram_write_mb\n");
  const auto row = [&](const char* how, const Respill& r) {
    for (int run = 0; run < kRuns; ++run) {
      Stored work(r, buffer.data());
      const LaunchCounters counted = reader.read(work, false).at(0);
      std::printf("%s,%s,%d,%d,%d,%d,%d,%.3f,%.3f\n", stack_limit, how,
                  r.store == Store::registers ? hardware::spilled_words(r.words) : r.words, r.behind,
                  static_cast<int>(r.shared_bytes / kMiB), static_cast<int>(r.sm_stride / kKiB),
                  static_cast<int>(r.warp_stride / kKiB), counted.values.at("dram__bytes_read.sum") / 1e6,
                  counted.values.at("dram__bytes_write.sum") / 1e6);
    }
  };
  constexpr int strides[][2] = {{2048, 32}, {4096, 64}, {8192, 128}, {3328, 52},
                                {2560, 40}, {160, 20},  {256, 32},   {1280, 20}};
  for (const int words : {120, 131, 150})
    for (const int mib : {0, 8}) {
      Respill r{.words = words, .turns = kTurns, .loads = true, .shared_bytes = mib * kMiB};
      row("local", r);
      for (const int tenths : {1, 2, 4, 7}) {
        r.behind = words * tenths / 10;
        row("local", r);
      }
      r.behind = 0;
      if (*stack_limit != 0) continue;
      r.store = Store::global;
      for (const auto& [sm, warp] : strides) {
        r.sm_stride = sm * kKiB, r.warp_stride = warp * kKiB;
        row("global", r);
      }
    }
  for (const int values : {96, 144, 176})
    row("registers", {.store = Store::registers, .words = values, .turns = kTurns, .shared_bytes = 8 * kMiB});
}

void measure_sets() {
  const hardware::DeviceArray<std::uint8_t> buffer(kBytes);
  CounterReader reader({"dram__bytes_read.sum"});
  std::printf("how,words,even_mib,turns,sm_kib,warp_kib,dram_read_mb\n");
  const auto row = [&](const char* how, Respill r) {
    for (const int turns : {2, 18}) {
      r.turns = turns, r.loads = r.store_once = r.in_turn = true;
      Stored work(r, buffer.data());
      const LaunchCounters counted = reader.read(work, false).at(0);
      std::printf("%s,%d,%d,%d,%d,%d,%.3f\n", how, r.words, static_cast<int>(r.even_bytes / kMiB), turns,
                  static_cast<int>(r.sm_stride / kKiB), static_cast<int>(r.warp_stride / kKiB),
                  counted.values.at("dram__bytes_read.sum") / 1e6);
    }
  };
  for (const int words : {60, 120, 131, 150})
    for (int mib = 0; mib <= 28; mib += 2) {
      Respill r{.words = words, .even_bytes = mib * kMiB};
      row("local", r);
      r.store = Store::global;
      for (const auto& [sm, warp] : {std::pair{2560, 40}, {2048, 32}, {8192, 128}}) {
        r.sm_stride = sm * kKiB, r.warp_stride = warp * kKiB;
        row("global", r);
      }
    }
}

void measure_bursts() {
  const hardware::DeviceArray<std::uint8_t> buffer(kBytes);
  CounterReader reader({"dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_sectors_srcunit_tex_op_read.sum",
                        "sm__cycles_elapsed.max"});
  std::printf("words,loads,behind,in_turn,pause,read_mb,write_mb,l2_reads,cycles\n");
  for (const int words : {120, 131, 150})
    for (const int pause : {0, 20, 100})
      for (const bool in_turn : {false, true})
        for (const int tenths : {-1, 0, 4, 7})  // no loads, after all, or so far behind
          for (int run = 0; run < kRuns; ++run) {
            const Respill r{.words = words,
                            .turns = kTurns,
                            .loads = tenths >= 0,
                            .behind = std::max(tenths, 0) * words / 10,
                            .apart = pause,
                            .in_turn = in_turn};
            Stored work(r, buffer.data());
            const auto counted = reader.read(work, false).at(0).values;
            std::printf("%d,%d,%d,%d,%d,%.3f,%.3f,%.0f,%.0f\n", words, r.loads ? 1 : 0, r.behind, in_turn ? 1 : 0,
                        pause, counted.at("dram__bytes_read.sum") / 1e6, counted.at("dram__bytes_write.sum") / 1e6,
                        counted.at("lts__t_sectors_srcunit_tex_op_read.sum"), counted.at("sm__cycles_elapsed.max"));
          }
}

void measure_lags() {
  constexpr int turns = 256;
  const hardware::DeviceArray<std::uint8_t> buffer(kBytes);
  CounterReader reader({"dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_sectors_srcunit_tex_op_read.sum"});
  std::printf("words,behind,turns,shared_mib,lag,read_mb,write_mb,l2_reads\n");
  for (const int words : {0, 60, 100, 131})
    for (const int tenths : words == 0 ? std::vector{0} : std::vector{0, 4})
      for (const int lag : {0, 4, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128}) {
        const Respill r{.words = words,
                        .turns = turns,
                        .behind = tenths * words / 10,
                        .shared_bytes = turns * kHeads * std::int64_t{32} * kKiB,
                        .lag = lag,
                        .in_turn = true};
        Stored work(r, buffer.data());
        const auto counted = reader.read(work, false).at(0).values;
        std::printf("%d,%d,%d,%d,%d,%.3f,%.3f,%.0f\n", words, r.behind, turns, static_cast<int>(r.shared_bytes / kMiB),
                    lag, counted.at("dram__bytes_read.sum") / 1e6, counted.at("dram__bytes_write.sum") / 1e6,
                    counted.at("lts__t_sectors_srcunit_tex_op_read.sum"));
      }
}

}  // namespace

int main(int argc, char** argv) try {
  const char* const stack_limit = argc > 1 ? argv[1] : "";
  if (std::string_view(stack_limit) == "sets") return measure_sets(), 0;
  if (std::string_view(stack_limit) == "lags") return measure_lags(), 0;
  if (std::string_view(stack_limit) == "bursts") return measure_bursts(), 0;
  if (argc > 1) check(cudaDeviceSetLimit(cudaLimitStackSize, std::strtoul(stack_limit, nullptr, 10)));
  measure(stack_limit);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "local_places: %s\n", error.what());
  return 1;
}
