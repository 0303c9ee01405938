#include "attest/gpu/built_in.h"

#include "api_numerics.h"
#include "attest/gpu/api_problem.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

// InvalidInput is the user's on either side of the table.
template <class Call>
auto keep_meaning(Call call) {
  try {
    return call();
  } catch (const InvalidInput& error) {
    throw plugin::InvalidOption(error.what());
  } catch (const KernelLost& error) {
    throw plugin::Lost(error.what());
  }
}

void tell(const RunReport& report, const attest_forward& args) {
  for (const std::string& hazard : report.hazards) args.hazard(args.host, hazard.c_str());
}

}  // namespace

attest_capability to_api(const Capability& c, attest_arithmetic arithmetic) {
  attest_capability api{};
  api.struct_size = sizeof api;
  api.device = c.device == "cuda" ? ATTEST_DEVICE_CUDA : ATTEST_DEVICE_CPU;
  api.name = c.name.c_str();
  api.description = c.description.c_str();
  for (const Dtype dtype : c.dtypes) api.dtypes |= 1U << static_cast<int>(dtype);
  api.channels =
      ATTEST_CHANNEL_O | (c.offers_lse ? ATTEST_CHANNEL_LSE : 0) | (c.offers_gradients ? ATTEST_CHANNEL_GRADIENTS : 0);
  api.features = (std::uint64_t{ATTEST_FEATURE_SPLITS} << 1) - 1;
  api.causal = 1U << ATTEST_CAUSAL_BOTTOM_RIGHT | 1U << ATTEST_CAUSAL_TOP_LEFT;
  api.bitwise = (c.bitwise_batch ? ATTEST_BITWISE_BATCH : 0) | (c.bitwise_gqa ? ATTEST_BITWISE_GQA : 0) |
                (c.bitwise_layout ? ATTEST_BITWISE_LAYOUT : 0) | (c.bitwise_repeat ? ATTEST_BITWISE_REPEAT : 0);
  api.arithmetic = arithmetic;
  api.isolates_values = c.isolates_values;
  api.lse_base = c.lse_base;
  api.lse_of_empty_row = c.lse_of_empty_row;
  return api;
}

void tell_numerics(const Numerics& from, attest_numerics& to) { to = to_api(from); }

std::optional<std::string> BuiltInKernel::unsupported(const attest_problem& problem) {
  return keep_meaning([&] { return kernel_->unsupported(case_of(problem)); });
}

void BuiltInKernel::numerics(const attest_problem& problem, attest_numerics& numerics) {
  keep_meaning([&] { tell_numerics(kernel_->numerics(case_of(problem)), numerics); });
}

void BuiltInKernel::forward(const attest_problem& problem, const attest_forward& args) {
  keep_meaning([&] { tell(kernel_->run(case_of(problem), args_of(problem, args)), args); });
}

void BuiltInKernel::backward(const attest_problem& problem, const attest_backward& args) {
  keep_meaning([&] { tell(kernel_->run_backward(case_of(problem), args_of(problem, args)), *args.forward); });
}

std::string BuiltInKernel::plan(const attest_problem& problem) {
  return keep_meaning([&] { return kernel_->plan(case_of(problem)).value_or(""); });
}

}  // namespace attest
