#include "calibrating.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <type_traits>

#include "attest/counters/counter_reader.h"
#include "attest/gpu/cuda_error.h"
#include "attest/gpu/device.h"
#include "attest/hardware/launches.h"
#include "attest/hardware/memory.h"
#include "attest/hardware/pipes.h"
#include "attest/hardware/placement.h"
#include "attest/problem/error.h"

namespace attest::tools {
namespace {

double attribute(cudaDeviceAttr which) {
  int value = 0;
  cuda_check(cudaDeviceGetAttribute(&value, which, 0), "cudaDeviceGetAttribute");
  return value;
}

double median(std::vector<double> all) {
  std::nth_element(all.begin(), all.begin() + std::ssize(all) / 2, all.end());
  return all[all.size() / 2];
}

/// Launches that wait, by the profiler's clock.
class WaitingLaunches : public CountedWork {
 public:
  explicit WaitingLaunches(std::vector<hardware::WaitingLaunch> launches) : launches_(std::move(launches)) {}
  void launch() override {
    for (const hardware::WaitingLaunch& l : launches_) hardware::launch(l, stream_.get());
  }
  void wait() override { cuda_check(cudaStreamSynchronize(stream_.get()), "a launch that waits"); }
  void empty_l2() override { wait(); }  // it does not matter here

 private:
  std::vector<hardware::WaitingLaunch> launches_;
  Stream stream_;
};

class Calibrator {
 public:
  Calibration run() {
    const DeviceLimits limits = open_device();
    result_.device.name = limits.name;
    is_hopper_ = limits.compute_capability == 90;
    ask_driver(limits);
    step("shared memory, L2, DRAM", [this] { measure_memory(); });
    step("pipes", [this] { measure_rates(); });
    step("launches", [this] { measure_launches(limits_of_cta()); });
    if (is_hopper_) {
      step("wgmma", [this] { measure_products(); });
      step("GPCs", [this] { measure_places(); });
    } else {
      result_.missing.emplace_back("wgmma, gpc_sides: these micro-benchmarks are written for compute capability 9.0");
    }
    return std::move(result_);
  }

 private:
  static int limits_of_cta() { return static_cast<int>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)); }

  template <class Work>
  void step(const char* words, Work work) {
    fmt::print(stderr, "attest: {}\n", words);
    try {
      work();
    } catch (const std::runtime_error& error) {  // such as memory that others hold
      result_.missing.push_back(fmt::format("{}: {}", words, error.what()));
    }
  }
  template <class T>
  void know(T DeviceSpec::*member, double value, std::string how) {
    if constexpr (std::is_integral_v<T>)
      result_.device.*member = std::llround(value);
    else
      result_.device.*member = value;
    result_.device.origins.push_back({std::string(device_field_name(member)), std::move(how)});
  }
  template <class T>
  void measured(T DeviceSpec::*member, double value, const std::string& how) {
    know(member, value, "measured by attest calibrate: " + how);
  }
  template <class T>
  void asked(T DeviceSpec::*member, double value, const char* what) {
    know(member, value, std::string("asked of the driver: ") + what);
  }

  void ask_driver(const DeviceLimits& limits) {
    asked(&DeviceSpec::compute_capability, limits.compute_capability, "compute capability");
    asked(&DeviceSpec::num_sms, limits.num_sms, "cudaDevAttrMultiProcessorCount");
    asked(&DeviceSpec::sm_clock_hz, 1e3 * attribute(cudaDevAttrClockRate), "cudaDevAttrClockRate, the highest");
    asked(&DeviceSpec::registers_per_sm, attribute(cudaDevAttrMaxRegistersPerMultiprocessor),
          "cudaDevAttrMaxRegistersPerMultiprocessor");
    asked(&DeviceSpec::max_warps_per_sm,
          attribute(cudaDevAttrMaxThreadsPerMultiProcessor) / attribute(cudaDevAttrWarpSize),
          "cudaDevAttrMaxThreadsPerMultiProcessor");
    asked(&DeviceSpec::max_ctas_per_sm, attribute(cudaDevAttrMaxBlocksPerMultiprocessor),
          "cudaDevAttrMaxBlocksPerMultiprocessor");
    asked(&DeviceSpec::smem_bytes_per_sm, static_cast<double>(limits.smem_bytes_per_sm),
          "cudaDevAttrMaxSharedMemoryPerMultiprocessor");
    asked(&DeviceSpec::smem_bytes_per_cta_max, static_cast<double>(limits.smem_bytes_per_block),
          "cudaDevAttrMaxSharedMemoryPerBlockOptin");
    asked(&DeviceSpec::smem_reserved_bytes_per_cta, attribute(cudaDevAttrReservedSharedMemoryPerBlock),
          "cudaDevAttrReservedSharedMemoryPerBlock");
    asked(&DeviceSpec::l2_bytes, static_cast<double>(limits.l2_bytes), "cudaDevAttrL2CacheSize");
    asked(&DeviceSpec::dram_bytes, static_cast<double>(limits.memory_bytes), "the memory that CUDA reports");
  }

  void measure_memory() {
    measured(&DeviceSpec::smem_latency_cycles, hardware::smem_latency_cycles(), "a chain of loads");
    measured(&DeviceSpec::smem_bytes_per_clock, hardware::smem_bytes_per_clock(), "32 warps' loads of 16 bytes a lane");
    measured(&DeviceSpec::l2_latency_cycles, hardware::l2_latency_cycles(),
             "a chain of loads, the second walk over 4 MiB");
    measured(&DeviceSpec::dram_latency_cycles, hardware::dram_latency_cycles(), "a chain of loads over 2 GiB");
    measured(&DeviceSpec::l2_bytes_per_second, hardware::l2_bytes_per_second(), "all SMs read 8 MiB again and again");
    measured(&DeviceSpec::dram_bytes_per_second, hardware::dram_bytes_per_second(), "all SMs read 2 GiB");
    measured(&DeviceSpec::dram_efficiency, 1, "dram_bytes_per_second is what was read");
    measured(&DeviceSpec::dram_read_efficiency, 1, "dram_bytes_per_second is what was read");
  }

  void measure_rates() {
    const std::vector<hardware::PipeRate> rates = hardware::measure_pipes();
    // of four warps a scheduler with as many chains as there are
    const auto cycles = [&](const char* kind) {
      double best = 0;
      for (const hardware::PipeRate& r : rates)
        if (r.kind == kind && r.warps_a_scheduler == 4) best = best == 0 ? r.cycles : std::min(best, r.cycles);
      return best;
    };
    constexpr double schedulers = 4, lanes = 32, fma_of_mma = 16 * 8 * 16;
    measured(&DeviceSpec::mma_sync_fma_per_clock_16bit, schedulers * fma_of_mma / cycles("mma_sync"),
             "m16n8k16 by 16 warps, 8 chains each");
    measured(&DeviceSpec::exp_per_clock, schedulers * lanes / cycles("ex2"), "ex2 by 16 warps, 16 chains each");
    measured(&DeviceSpec::alu_instruction_cycles, (cycles("max") + cycles("pack")) / 2, "max and pack, likewise");
    measured(&DeviceSpec::fma_instruction_cycles, (cycles("fma") + cycles("add")) / 2, "fma and add, likewise");
  }

  void measure_products() {
    const std::vector<hardware::ProductsTime> times = hardware::measure_wgmma();
    const auto cycles = [&](int warpgroups, int products) {
      for (const hardware::ProductsTime& t : times)
        if (t.columns == 128 && t.a == "smem" && t.warpgroups == warpgroups && t.products == products) return t.cycles;
      throw std::logic_error("no such run of wgmma");
    };
    constexpr double fma_of_product = 64 * 128 * 16;
    const double rate = 2 * 24 * fma_of_product / (cycles(2, 32) - cycles(2, 8));
    measured(&DeviceSpec::wgmma_fma_per_clock_16bit, rate, "24 more products of 64 x 128 x 16 by two warpgroups");
    measured(&DeviceSpec::wgmma_latency_cycles, cycles(1, 8) - 8 * fma_of_product / rate,
             "what 8 products take beyond their rate");
    const std::vector<hardware::RateBesideProducts> rates = hardware::measure_beside_products();
    const auto beside = [&](const char* kind) {
      double alone = 0, other = 0;
      for (const hardware::RateBesideProducts& r : rates) {
        if (r.kind != kind) continue;
        if (r.products == "nothing") alone = r.cycles;
        if (r.products == "other") other = r.cycles;
      }
      return other / alone;
    };
    measured(&DeviceSpec::alu_beside_wgmma, (beside("max") + beside("pack")) / 2,
             "max and pack beside another's products");
    measured(&DeviceSpec::fma_beside_wgmma, (beside("fma") + beside("add")) / 2, "fma and add, likewise");
    measured(&DeviceSpec::exp_beside_wgmma, beside("ex2"), "ex2, likewise");
  }

  /// A grid fills GPCs in the order of their lowest SMs.
  void measure_places() {
    std::map<int, int> side_of_gpc;
    for (const hardware::SmPlace& place : hardware::locate_sms()) side_of_gpc[place.gpc] = place.side;
    for (const auto& [gpc, side] : side_of_gpc) result_.device.gpc_sides.push_back(side);
    result_.device.origins.push_back(
        {"gpc_sides",
         "measured by attest calibrate: GPCs by the SMs that clusters are placed on, sides by the latency of atomics"});
  }

  void measure_launches(int smem_bytes_per_cta) {
    measured(&DeviceSpec::launch_overhead_seconds, hardware::seconds_between_launches(),
             "from a kernel's end to the next one's start");
    const std::vector<hardware::WaitingLaunch> launches = hardware::waiting_launches(smem_bytes_per_cta, is_hopper_);
    constexpr const char* clock = "sm__cycles_elapsed.max";
    WaitingLaunches work(launches);
    const std::vector<LaunchCounters> counted = CounterReader({clock}).read(work, true);
    const auto cycles_of = [&](std::size_t i) { return counted.at(i).values.at(clock); };
    const auto ctas_of_wave = [&](std::size_t i) {
      return static_cast<double>(launches[i].ctas_an_sm * result_.device.num_sms);
    };
    std::vector<double> starts;  // of empty CTAs; of eight waves, less one's
    for (std::size_t i = 0; i < launches.size(); ++i)
      if (launches[i].wait_cycles == 0 && launches[i].waves == 8)
        starts.push_back((cycles_of(i) - cycles_of(i - 9)) / (7 * ctas_of_wave(i)));
    const double start = median(starts);
    measured(&DeviceSpec::cta_start_cycles, start, "sm__cycles_elapsed.max of eight waves of empty CTAs, less one's");
    std::vector<double> around, further;  // what waits of 8000 cycles take besides
    for (std::size_t i = 0; i < launches.size(); ++i) {
      const hardware::WaitingLaunch& l = launches[i];
      if (l.wait_cycles != 8000) continue;
      const double cycles = cycles_of(i);
      if (l.waves == 1) around.push_back(cycles - 8000 - start * ctas_of_wave(i));
      if (l.waves == 8 && l.ctas_an_sm == 2)
        further.push_back((cycles - cycles_of(i - 9)) / 7 - 8000);  // less one wave's
    }
    measured(&DeviceSpec::kernel_launch_cycles, median(around),
             "sm__cycles_elapsed.max of one wave that waits, less its wait and its CTAs' starts");
    measured(&DeviceSpec::cta_launch_cycles, median(further),
             "what each further wave takes beyond its wait, two CTAs an SM");
  }

  bool is_hopper_ = false;
  Calibration result_;
};

}  // namespace

Calibration calibrate_gpu() { return Calibrator().run(); }

}  // namespace attest::tools
