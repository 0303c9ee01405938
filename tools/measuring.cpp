#include "measuring.h"

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <sstream>

#include "as_crashes.h"
#include "attest/counters/counter_reader.h"
#include "attest/counters/device_call.h"
#include "attest/fuzz/device_forwards.h"
#include "attest/fuzz/progress.h"
#include "attest/gpu/cuda_error.h"
#include "attest/hardware/placement.h"
#include "attest/problem/exit_code.h"
#include "attest/simulator/calibration.h"
#include "ncu.h"

namespace attest::tools {
namespace {

std::string cuda_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue ...": the word of digits with two dots.
std::string driver_version() {
  std::ifstream in("/proc/driver/nvidia/version");
  for (std::string word; in >> word;)
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != word.rfind('.')) return word;
  int version = 0;
  cudaDriverGetVersion(&version);
  return "of CUDA " + cuda_version(version);
}

/// Once for all of them, so that each has its tensors where a prediction has them: less than that lies elsewhere under
/// Nsight Compute.
void reserve_for(const std::vector<MeasuredCall>& calls, DeviceMemory& memory) {
  std::size_t most = std::size_t{512} << 20;
  for (const MeasuredCall& call : calls)
    as_crashes(call, [&] { most = std::max(most, DeviceCall::bytes(*make_device_forward(call.kernel), call.c)); });
  try {
    memory.reserve(most);
  } catch (const CudaError& error) {
    if (error.error() != cudaErrorMemoryAllocation) throw;
    std::size_t free = 0, all = 0;
    cuda_check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
    throw EnvironmentError(
        fmt::format("GPU memory: {} bytes are needed, {} of {} are free; end what holds the others, or take a case of "
                    "fewer batch entries, heads or tokens",
                    most, free, all));
  }
}

}  // namespace

Provenance measuring_gpu() {
  const DeviceLimits limits = open_device(without_gpu);
  Provenance how;
  how.gpu = limits.name, how.num_sms = limits.num_sms, how.compute_capability = limits.compute_capability;
  how.driver = driver_version(), how.cuda = cuda_version(CUDART_VERSION);
  return how;
}

std::vector<double> gpc_sides_here(const DeviceSpec& device) try {
  if (open_device(without_gpu).compute_capability != 90 || device.l2_partitions == 1) return {};
  const std::vector<double> sides = hardware::sides_of_gpcs(hardware::locate_sms());
  device_of_chip(device, sides);
  return sides;
} catch (const std::exception& error) {
  fmt::print(stderr, "attest: not predicted for this GPU's own sides of L2: {}\n", error.what());
  return {};
}

void expect_gpu(std::string_view otherwise) { open_device(otherwise); }

std::optional<std::string> unmeasurable(const MeasuredCall& call) {
  return DeviceCall::unsupported(*make_device_forward(call.kernel), call.c);
}

void measure_with_cupti(std::vector<MeasuredCall>& calls, bool warm, bool progress) {
  CounterReader reader(cupti_counters());
  if (progress) fmt::print(stderr, "attest: CUPTI makes {} calls, {} passes each\n", calls.size(), reader.passes());
  DeviceMemory memory;
  reserve_for(calls, memory);
  Progress told(progress, calls.size(), 0);
  std::size_t done = 0;
  for (MeasuredCall& call : calls) {
    as_crashes(call, [&] {
      DeviceCall on_device(make_device_forward(call.kernel), call.c, memory);
      call.launches.clear();
      for (LaunchCounters& read : reader.read(on_device, warm)) {
        MeasuredLaunch& launch = call.launches.emplace_back();
        launch.function = read.function;
        for (const auto& [name, value] : read.values) launch.counters[std::string(ncu_name(name))] = value;
      }
    });
    told.show_of(++done, calls.size(), "counts");
  }
}

int make_marked_calls(const std::string& file) try {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  const std::vector<MeasuredCall> requests = requests_from_json_text(text.str());
  DeviceMemory memory;
  reserve_for(requests, memory);
  for (const MeasuredCall& request : requests) {
    std::optional<DeviceCall> call;
    as_crashes(request, [&] {
      call.emplace(make_device_forward(request.kernel), request.c, memory);
      call->launch();  // clocks rise, and whatever happens once has happened
      call->wait();
    });
    cuda_check(cudaProfilerStart(), "cudaProfilerStart");  // what no kernel is to blame for
    as_crashes(request, [&] {
      call->mark();
      call->launch();
      call->wait();
    });
    cuda_check(cudaProfilerStop(), "cudaProfilerStop");
  }
  return exit_pass;
} catch (const KernelCrashed& error) {
  fmt::print(stderr, "{}{}\n", measure_worker_says, error.what());
  return exit_kernel_crashed;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}{}\n", measure_worker_says, error.what());
  return exit_environment;
}

}  // namespace attest::tools
