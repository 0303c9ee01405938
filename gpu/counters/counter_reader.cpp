#include "attest/counters/counter_reader.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "attest/gpu/cuda_error.h"
#include "attest/gpu/device.h"
#include "attest/problem/error.h"
#include "counter_ranges.h"
#include "cupti.h"
#include "launch_records.h"

namespace attest {
namespace {

/// What brings the chip to the clock that it keeps under load.
constexpr int warm_up_calls = 3;

}  // namespace

struct CounterReader::Session {
  const Cupti& api;
  std::vector<std::string> metrics;
  std::vector<const char*> names;
  CUpti_Profiler_Host_Object* host = nullptr;
  ImageBytes config;
  std::size_t passes = 0;

  explicit Session(std::vector<std::string> wanted) : api(cupti()), metrics(std::move(wanted)) {
    open_device();
    for (const std::string& metric : metrics) names.push_back(metric.c_str());
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Initialize_Params, initialize);
    cupti_check(api.cuptiProfilerInitialize(&initialize), "cuptiProfilerInitialize");
    schedule(chip_name());
  }
  ~Session() {
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_Deinitialize_Params, end);
    end.pHostObject = host;
    api.cuptiProfilerHostDeinitialize(&end);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::string chip_name() const {
    int device = 0;
    cuda_check(cudaGetDevice(&device), "cudaGetDevice");
    ATTEST_CUPTI_PARAMS(CUpti_Device_GetChipName_Params, chip);
    chip.deviceIndex = static_cast<std::size_t>(device);
    cupti_check(api.cuptiDeviceGetChipName(&chip), "cuptiDeviceGetChipName");
    return chip.pChipName;
  }

  /// Which counters are read in which pass.
  void schedule(const std::string& chip) {
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_Initialize_Params, start);
    start.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    start.pChipName = chip.c_str();
    cupti_check(api.cuptiProfilerHostInitialize(&start), fmt::format("cuptiProfilerHostInitialize for {}", chip));
    host = start.pHostObject;
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, add);
    add.pHostObject = host;
    add.ppMetricNames = names.data();
    add.numMetrics = names.size();
    cupti_check(api.cuptiProfilerHostConfigAddMetrics(&add),
                fmt::format("{} has not all of the counters that are read", chip));
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
    size.pHostObject = host;
    cupti_check(api.cuptiProfilerHostGetConfigImageSize(&size), "cuptiProfilerHostGetConfigImageSize");
    config.resize(size.configImageSize);
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, image);
    image.pHostObject = host;
    image.configImageSize = config.size();
    image.pConfigImage = config.data();
    cupti_check(api.cuptiProfilerHostGetConfigImage(&image), "cuptiProfilerHostGetConfigImage");
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, count);
    count.configImageSize = config.size();
    count.pConfigImage = config.data();
    cupti_check(api.cuptiProfilerHostGetNumOfPasses(&count), "cuptiProfilerHostGetNumOfPasses");
    passes = count.numOfPasses;
  }
};

CounterReader::CounterReader(std::vector<std::string> metrics)
    : session_(std::make_unique<Session>(std::move(metrics))) {}
CounterReader::~CounterReader() = default;

std::size_t CounterReader::passes() const { return session_->passes; }

std::vector<LaunchCounters> CounterReader::read(CountedWork& work, bool warm) {
  Session& s = *session_;
  std::vector<LaunchCounters> launches = record_launches([&work] {
    work.launch();
    work.wait();
  });
  if (launches.empty()) return launches;
  for (int i = 0; i < warm_up_calls; ++i) work.launch();
  work.wait();
  const auto count = [&] {
    auto ranges = std::make_unique<CounterRanges>(s.names, s.config, launches.size());
    bool done = false;
    for (std::size_t pass = 0; !done; ++pass) {
      if (pass > s.passes) throw EnvironmentError(fmt::format("counters: no end after {} passes", pass));
      if (warm) {
        work.launch();
        work.wait();
      } else {
        work.empty_l2();
      }
      done = ranges->pass(work);
    }
    return ranges;
  };
  // What a machine's first process counts first has some 9 MiB more written to DRAM (docs/results/h200-measure.md).
  static const bool first_counts_are_dropped = (count(), true);
  static_cast<void>(first_counts_are_dropped);
  const std::unique_ptr<CounterRanges> ranges = count();
  ImageBytes& image = ranges->decoded();
  std::vector<double> values(s.names.size());
  for (std::size_t i = 0; i < launches.size(); ++i) {
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, evaluate);
    evaluate.pHostObject = s.host;
    evaluate.pCounterDataImage = image.data();
    evaluate.counterDataImageSize = image.size();
    evaluate.rangeIndex = i;
    evaluate.ppMetricNames = s.names.data();
    evaluate.numMetrics = s.names.size();
    evaluate.pMetricValues = values.data();
    cupti_check(s.api.cuptiProfilerHostEvaluateToGpuValues(&evaluate), "cuptiProfilerHostEvaluateToGpuValues");
    for (std::size_t m = 0; m < values.size(); ++m) launches[i].values[s.metrics[m]] = values[m];
  }
  return launches;
}

}  // namespace attest
