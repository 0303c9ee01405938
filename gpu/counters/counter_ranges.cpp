#include "counter_ranges.h"

#include <cuda.h>
#include <fmt/format.h>

#include "attest/gpu/cuda_error.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

CUcontext current_context() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  cuda_check(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function, 12000, cudaEnableDefault, &found),
             "cudaGetDriverEntryPointByVersion");
  CUcontext context = nullptr;
  if (function == nullptr || reinterpret_cast<CUresult (*)(CUcontext*)>(function)(&context) != CUDA_SUCCESS)
    throw EnvironmentError("counters: the device has no context");
  return context;
}

}  // namespace

CounterRanges::CounterRanges(std::vector<const char*>& names, ImageBytes& config, std::size_t launches)
    : launches_(launches) {
  ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_Enable_Params, enable);
  enable.ctx = current_context();
  cupti_check(api_.cuptiRangeProfilerEnable(&enable), "cuptiRangeProfilerEnable");
  profiler_ = enable.pRangeProfilerObject;
  ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataSize_Params, size);
  size.pRangeProfilerObject = profiler_;
  size.pMetricNames = names.data();
  size.numMetrics = names.size();
  size.maxNumOfRanges = launches;
  size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(launches);
  cupti_check(api_.cuptiRangeProfilerGetCounterDataSize(&size), "cuptiRangeProfilerGetCounterDataSize");
  data_.resize(size.counterDataSize);
  ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, image);
  image.pRangeProfilerObject = profiler_;
  image.counterDataSize = data_.size();
  image.pCounterData = data_.data();
  cupti_check(api_.cuptiRangeProfilerCounterDataImageInitialize(&image),
              "cuptiRangeProfilerCounterDataImageInitialize");
  ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_SetConfig_Params, set);
  set.pRangeProfilerObject = profiler_;
  set.configSize = config.size();
  set.pConfig = config.data();
  set.counterDataImageSize = data_.size();
  set.pCounterDataImage = data_.data();
  set.range = CUPTI_AutoRange;  // a range a launch
  set.replayMode = CUPTI_UserReplay;
  set.maxRangesPerPass = launches;
  set.numNestingLevels = set.minNestingLevel = set.targetNestingLevel = 1;
  cupti_check(api_.cuptiRangeProfilerSetConfig(&set), "cuptiRangeProfilerSetConfig");
}
CounterRanges::~CounterRanges() {
  ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_Disable_Params, disable);
  disable.pRangeProfilerObject = profiler_;
  api_.cuptiRangeProfilerDisable(&disable);
}

bool CounterRanges::pass(CountedWork& work) {
  ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_Start_Params, start);
  start.pRangeProfilerObject = profiler_;
  cupti_check(api_.cuptiRangeProfilerStart(&start), "cuptiRangeProfilerStart");
  work.launch();
  work.wait();
  ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_Stop_Params, stop);
  stop.pRangeProfilerObject = profiler_;
  cupti_check(api_.cuptiRangeProfilerStop(&stop), "cuptiRangeProfilerStop");
  return stop.isAllPassSubmitted != 0;
}

ImageBytes& CounterRanges::decoded() {
  ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_DecodeData_Params, decode);
  decode.pRangeProfilerObject = profiler_;
  cupti_check(api_.cuptiRangeProfilerDecodeData(&decode), "cuptiRangeProfilerDecodeData");
  ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo_Params, info);
  info.pCounterDataImage = data_.data();
  info.counterDataImageSize = data_.size();
  cupti_check(api_.cuptiRangeProfilerGetCounterDataInfo(&info), "cuptiRangeProfilerGetCounterDataInfo");
  if (info.numTotalRanges != launches_ || decode.numOfRangeDropped != 0)
    throw EnvironmentError(fmt::format("counters: {} launches gave {} ranges, {} dropped", launches_,
                                       info.numTotalRanges, decode.numOfRangeDropped));
  return data_;
}

}  // namespace attest
