// CUPTI, opened when it is asked for: attest starts without it.
#pragma once
#include <cupti_activity.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <string_view>

namespace attest {

/// The functions of libcupti that are called, by their own names.
struct Cupti {
#define ATTEST_CUPTI_FUNCTIONS(X)                 \
  X(cuptiGetResultString)                         \
  X(cuptiProfilerInitialize)                      \
  X(cuptiDeviceGetChipName)                       \
  X(cuptiProfilerHostInitialize)                  \
  X(cuptiProfilerHostDeinitialize)                \
  X(cuptiProfilerHostConfigAddMetrics)            \
  X(cuptiProfilerHostGetConfigImageSize)          \
  X(cuptiProfilerHostGetConfigImage)              \
  X(cuptiProfilerHostGetNumOfPasses)              \
  X(cuptiProfilerHostEvaluateToGpuValues)         \
  X(cuptiRangeProfilerEnable)                     \
  X(cuptiRangeProfilerDisable)                    \
  X(cuptiRangeProfilerGetCounterDataSize)         \
  X(cuptiRangeProfilerCounterDataImageInitialize) \
  X(cuptiRangeProfilerSetConfig)                  \
  X(cuptiRangeProfilerStart)                      \
  X(cuptiRangeProfilerStop)                       \
  X(cuptiRangeProfilerDecodeData)                 \
  X(cuptiRangeProfilerGetCounterDataInfo)         \
  X(cuptiActivityEnable)                          \
  X(cuptiActivityDisable)                         \
  X(cuptiActivityRegisterCallbacks)               \
  X(cuptiActivityFlushAll)                        \
  X(cuptiActivityGetNextRecord)
#define ATTEST_DECLARE(name) decltype(&::name) name = nullptr;
  ATTEST_CUPTI_FUNCTIONS(ATTEST_DECLARE)
#undef ATTEST_DECLARE
};

/// A structure of parameters, which knows its own size.
#define ATTEST_CUPTI_PARAMS(type, name) \
  type name{};                          \
  name.structSize = type##_STRUCT_SIZE

/// Looks where the loader does and in the toolkit's usual folders; ATTEST_CUPTI names the file otherwise. Throws
/// EnvironmentError where there is none of this build's version.
const Cupti& cupti();

/// Throws EnvironmentError where `result` is an error: which permission is missing and how to get it, or the call and
/// what CUPTI says of it.
void cupti_check(CUptiResult result, std::string_view call);

}  // namespace attest
