#include "calibrating.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "attest/gpu/cuda_error.h"
#include "attest/gpu/device.h"
#include "attest/hardware/contention.h"
#include "attest/hardware/l2.h"
#include "attest/hardware/launches.h"
#include "attest/hardware/memory.h"
#include "attest/hardware/pipes.h"
#include "attest/hardware/placement.h"
#include "attest/problem/error.h"
#include "attest/simulator/calibration.h"
#include "calibrating_l2.h"
#include "calibrating_walks.h"
#include "calibration_step.h"
#include "counted_launches.h"

namespace attest::tools {
namespace {

double attribute(cudaDeviceAttr which) {
  int value = 0;
  cuda_check(cudaDeviceGetAttribute(&value, which, 0), "cudaDeviceGetAttribute");
  return value;
}

double median(std::vector<double> all) {
  if (all.empty()) throw EnvironmentError("nothing was measured");
  std::nth_element(all.begin(), all.begin() + std::ssize(all) / 2, all.end());
  return all[all.size() / 2];
}

class Calibrator {
 public:
  Calibration run() {
    const DeviceLimits limits = open_device("take a device of `attest devices`");
    result_.device.name = limits.name;
    is_hopper_ = limits.compute_capability == 90;
    ask_driver(limits);
    const std::size_t asked_of_driver = result_.device.origins.size();
    step("DRAM", [this] { measure_dram(); });  // before other memory is freed
    step("shared memory, L2", [this] { measure_memory(); });
    step("DRAM's latency", [this] { measure_dram_latency(); });
    step("L2's partitions, ways and dirty ways", [this] { measure_l2(); });
    step("pipes", [this] { measure_rates(); });
    step("launches", [this] { measure_launches(limits_of_cta()); });
    if (is_hopper_) {
      step("wgmma", [this] { measure_products(); });
      step("GPCs", [this] { measure_places(); });
      step("shares of L2", [this] { measure_shares(); });
      step("clocks of GPCs, drift of CTAs", [this] { measure_walks_of_ctas(); });
      step("code", [this] { measure_code(); });
    } else {
      result_.missing.emplace_back(
          "wgmma, gpc_sides, gpc_clocks, gpc_clock_spread_*, step_deviation_*, l2_shares, code_cache_bytes, "
          "code_bytes_per_clock: these "
          "micro-benchmarks are for compute capability 9.0");
    }
    if (result_.device.origins.size() == asked_of_driver)
      throw EnvironmentError("nothing could be measured; " + result_.missing.front());
    return std::move(result_);
  }

 private:
  static int limits_of_cta() { return static_cast<int>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)); }

  template <class Work>
  void step(const char* name, Work work) {
    calibration_step(name, result_.missing, work, [] { return cudaDeviceSynchronize() == cudaSuccess; });
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
    const auto [low, high] = device_field_range(member);
    if (!(value >= low && value <= high)) {  // another GPU's is nearer the truth than none
      result_.missing.push_back(
          fmt::format("{}: {:.6g} came out, a device has {} to {}", device_field_name(member), value, low, high));
      return;
    }
    know(member, value, "measured by attest calibrate: " + how);
  }
  template <class T>
  void measured(T DeviceSpec::*member, const Measured& m) {
    measured(member, m.value, m.how);
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
             "chains of loads, one an SM, the second walk over 2 to 4 MiB, at most a quarter of L2");
    measured(&DeviceSpec::l2_latency_tail_cycles,
             latency_tail_of(lines_together(true), result_.device.l2_latency_cycles),
             together_ + ", beyond the latency");
    measured(&DeviceSpec::l2_bytes_per_second, hardware::l2_bytes_per_second(),
             "all SMs copy 8 MiB, or a quarter of L2, to shared memory again and again");
    measured(&DeviceSpec::l2_write_bytes_per_second, hardware::l2_write_bytes_per_second(),
             "all SMs write 8 MiB, or a quarter of L2, again and again");
  }

  void measure_dram() {
    const hardware::DramRates rates = hardware::dram_bytes_per_second();
    constexpr double transfers_a_clock = 2, bits_a_byte = 8;
    double peak = transfers_a_clock * 1e3 * attribute(cudaDevAttrMemoryClockRate) *
                  attribute(cudaDevAttrGlobalMemoryBusWidth) / bits_a_byte;
    if (peak >= rates.read) {
      asked(&DeviceSpec::dram_bytes_per_second, peak,
            "twice cudaDevAttrMemoryClockRate, times cudaDevAttrGlobalMemoryBusWidth");
    } else {  // a driver that does not say
      peak = rates.read;
      measured(&DeviceSpec::dram_bytes_per_second, peak, "all SMs read 2 GiB");
    }
    measured(&DeviceSpec::dram_read_efficiency, rates.read / peak, "all SMs read 2 GiB");
    measured(&DeviceSpec::dram_efficiency, std::min(1.0, rates.copy / peak), "a copy of 1 GiB");
  }

  void measure_dram_latency() {
    const Latency dram = latency_of(lines_together(false));
    measured(&DeviceSpec::dram_latency_cycles, dram.cycles, together_ + ", beside what varies");
    measured(&DeviceSpec::dram_latency_tail_cycles, dram.tail_cycles, together_ + ", what varies");
  }

  static std::vector<LinesTime> lines_together(bool in_l2) {
    constexpr int ctas = 32;  // others ask too, and neither L2 nor DRAM is busy
    std::vector<LinesTime> times;
    for (const hardware::LinesTogether& row : hardware::lines_together(in_l2, {ctas}))
      times.push_back({row.lines, row.mean});
    return times;
  }

  void measure_l2() {
    const L2Ways found = measure_l2_ways(result_.device.l2_bytes);
    measured(&DeviceSpec::l2_partitions, found.partitions);
    measured(&DeviceSpec::l2_ways, found.ways);
    measured(&DeviceSpec::l2_dirty_ways, found.dirty_ways);
  }

  void measure_code() {
    constexpr double instruction_bytes = 16;
    double shortest = 0, cache_bytes = 0;
    for (const hardware::FetchRate& r : hardware::measure_fetch()) {
      if (r.skips || r.warps_a_scheduler != 1) continue;
      if (shortest == 0) shortest = r.cycles;
      if (r.cycles > 1.1 * shortest) break;  // the longer ones too
      cache_bytes = r.instructions * instruction_bytes;
    }
    if (cache_bytes == 0) throw EnvironmentError("no loop of straight code was measured");
    measured(&DeviceSpec::code_cache_bytes, cache_bytes, "the longest loop that is fetched as fast as short ones");
    std::vector<double> rates;
    for (const hardware::WalkedCode& r : hardware::measure_walked_code()) {
      const double bytes = r.instructions * instruction_bytes, kept = cache_bytes / 2;  // of two CTAs each
      if (r.sms > 1 && r.apart && r.turns == 0 && bytes >= 2 * cache_bytes)
        rates.push_back(2 * (instruction_bytes - kept / r.instructions) / r.cycles);
    }
    measured(&DeviceSpec::code_bytes_per_clock, median(rates),
             "an SM's share where two CTAs on each walk longer code, apart");
  }

  void measure_rates() {
    const std::vector<hardware::PipeRate> rates = hardware::measure_pipes();
    // of four warps a scheduler with the most chains
    const auto cycles = [&](const char* kind) {
      const hardware::PipeRate* most = nullptr;
      for (const hardware::PipeRate& r : rates)
        if (r.kind == kind && r.warps_a_scheduler == 4 && (most == nullptr || r.chains > most->chains)) most = &r;
      if (most == nullptr) throw std::logic_error("no such pipe");
      return most->cycles;
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
    const double rate = 2 * 96 * fma_of_product / (cycles(2, 128) - cycles(2, 32));
    measured(&DeviceSpec::wgmma_fma_per_clock_16bit, rate, "96 more products of 64 x 128 x 16 by two warpgroups");
    measured(&DeviceSpec::wgmma_latency_cycles, cycles(1, 8) - 8 * fma_of_product / rate,
             "what 8 products take beyond their rate");
    const std::vector<hardware::ContentionRow> rows = hardware::measure_contention();
    const auto beside = [&](const char* part) {
      double n = 0, longer = 0;
      for (const hardware::ContentionRow& r : rows)
        if (r.part == part && r.tile_n == 128) ++n, longer += r.beside / r.alone;
      return longer / n;
    };
    measured(&DeviceSpec::alu_beside_wgmma, beside("maxima"), "maxima of 64 x 128 scores beside another's products");
    measured(&DeviceSpec::fma_beside_wgmma, beside("rescaling"), "rescaling 64 x 128 of O, likewise");
    measured(&DeviceSpec::scaled_exp_beside_wgmma, beside("exponentials"),
             "exponentials of 64 x 128 scores with the product that scales each, likewise");
  }

  void measure_places() {
    result_.device.gpc_sides = hardware::sides_of_gpcs(hardware::locate_sms());
    result_.device.origins.push_back(
        {"gpc_sides",
         "measured by attest calibrate: GPCs by the SMs that clusters are placed on, sides by the latency of atomics"});
  }

  void measure_walks_of_ctas() {
    const Walks walks = measure_walks();
    for (const double clock : walks.wgmma.over_mean) result_.device.gpc_clocks.push_back(std::round(1e4 * clock) / 1e4);
    result_.device.origins.push_back(
        {"gpc_clocks", "measured by attest calibrate: clocks of SMs over the global timer while wgmma is busy"});
    measured(&DeviceSpec::gpc_clock_spread_mma_sync_over_wgmma, walks.mma_sync.deviation / walks.wgmma.deviation,
             "how far a launch's GPCs lie apart, likewise");
    const std::string how = "over 16 key tiles of 8 CTAs a head from L2, ";
    measured(&DeviceSpec::step_deviation_mma_sync, walks.deviation_mma_sync, how + "two CTAs an SM");
    measured(&DeviceSpec::step_deviation_mma_sync_alone, walks.deviation_mma_sync_alone, how + "one CTA an SM");
    measured(&DeviceSpec::step_deviation_wgmma, walks.deviation_wgmma, how + "two warpgroups");
    measured(&DeviceSpec::step_deviation_wgmma_3, walks.deviation_wgmma_3, how + "three warpgroups");
  }

  void measure_shares() {
    result_.device.l2_shares = l2_shares_of_sms();
    result_.device.origins.push_back(
        {"l2_shares", "measured by attest calibrate: all SMs store 128 KiB of local memory each, again and again"});
  }

  void measure_launches(int smem_bytes_per_cta) {
    measured(&DeviceSpec::launch_overhead_seconds, hardware::seconds_between_launches(),
             "from a kernel's end to the next one's start");
    measured(&DeviceSpec::argument_line_cycles, hardware::argument_line_cycles(),
             "each of 8 more lines of arguments, one after the other");
    const hardware::WaitingLaunches launches(smem_bytes_per_cta, is_hopper_);
    const std::vector<double> cycles = counted_cold(launches, launches.all(), "sm__cycles_elapsed.max");
    const auto beyond = [&](std::size_t i) { return cycles.at(i) - launches.all().at(i).wait_cycles; };
    const double alone = beyond(0), of_sms = beyond(1);
    measured(&DeviceSpec::kernel_launch_cycles, alone,
             "sm__cycles_elapsed.max of a CTA that waits and stores a word a thread, less its wait; cold caches");
    measured(&DeviceSpec::cta_start_cycles,
             std::max(0.0, of_sms - alone) / std::max(1.0, static_cast<double>(result_.device.num_sms - 1)),
             "what such CTAs on all other SMs add to that, each");
    double one_wave = 0, further = 0;
    for (std::size_t i = 0; i < launches.all().size(); ++i) {
      const hardware::WaitingLaunch& l = launches.all()[i];
      if (l.wait_cycles != launches.all()[0].wait_cycles || l.ctas_an_sm != 2) continue;
      if (l.waves == 1) one_wave = cycles[i];
      if (l.waves == 8) further = (cycles[i] - one_wave) / 7 - l.wait_cycles;
    }
    measured(&DeviceSpec::cta_launch_cycles, std::max(0.0, further),
             "what each further wave takes beyond its wait, two CTAs an SM");
    if (result_.device.l2_partitions > 1) {
      constexpr double sector_bytes = 32;
      const std::vector<double> crossed =
          counted_cold(launches, {launches.all().front()}, "lts__t_sectors_srcunit_ltcfabric.sum");
      measured(&DeviceSpec::launch_crossing_bytes, sector_bytes * crossed.front(),
               "lts__t_sectors_srcunit_ltcfabric.sum of one such CTA");
    }
  }

  /// Of each launch when L2 has nothing of it, as a call is counted: the median of so many times.
  std::vector<double> counted_cold(const hardware::WaitingLaunches& launches,
                                   const std::vector<hardware::WaitingLaunch>& which, const char* counter) const {
    constexpr std::size_t times = 5;
    const hardware::L2Buffer other(4 * result_.device.l2_bytes);
    std::vector<CountedLaunches::Launch> work;
    const auto add = [&](const hardware::WaitingLaunch& l) {
      work.emplace_back([&](cudaStream_t stream) { other.read_once(0, 4 * result_.device.l2_bytes, stream); });
      work.emplace_back([&](cudaStream_t stream) { launches.launch(l, stream); });
    };
    add(which.front());  // a reading's first launch takes longer
    for (const hardware::WaitingLaunch& l : which) add(l);
    std::vector<std::vector<double>> counted(which.size());
    for (std::size_t time = 0; time < times; ++time) {
      const std::vector<double> all = CountedLaunches(work).count(counter);
      for (std::size_t i = 0; i < counted.size(); ++i) counted[i].push_back(all.at(2 * i + 3));
    }
    std::vector<double> medians;
    for (const std::vector<double>& of_launch : counted) medians.push_back(median(of_launch));
    return medians;
  }

  const std::string together_ = "1 to 16 lines of as many pages, asked for together by each of 32 CTAs";
  bool is_hopper_ = false;
  Calibration result_;
};

}  // namespace

Calibration calibrate_gpu() { return Calibrator().run(); }

}  // namespace attest::tools
