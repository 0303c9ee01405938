#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "attest/problem/error.h"
#include "read_struct.h"

namespace attest {
namespace {

// The first editions' sizes: fields that come later make structs longer and these no larger.
constexpr std::size_t first_api_bytes = offsetof(attest_kernel_api, plan) + sizeof(attest_kernel_api::plan);
constexpr std::size_t first_capability_bytes =
    offsetof(attest_capability, lse_of_empty_row) + sizeof(attest_capability::lse_of_empty_row);

[[noreturn]] void refuse(std::string_view field, const std::string& value, const std::string& limit) {
  throw InvalidInput(fmt::format("capability.{}", field), value, limit);
}

std::string printable(std::string_view field, const char* text, std::size_t shortest, std::size_t longest) {
  const std::size_t length = text ? ::strnlen(text, longest + 1) : 0;
  const std::string_view words(text, length);
  const bool prints = std::all_of(words.begin(), words.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
  if (length < shortest || length > longest || !prints)
    refuse(field, length == 0 ? "nothing" : fmt::format("{} characters", length),
           fmt::format("is no text of {} to {} printable characters", shortest, longest));
  return std::string(words);
}

void check_bits(std::string_view field, std::uint64_t bits, std::uint64_t known) {
  if ((bits & ~known) != 0) refuse(field, fmt::format("{:#x}", bits), fmt::format("has bits beyond {:#x}", known));
}

}  // namespace

attest_kernel_api read_api(const attest_kernel_api* api) {
  if (api == nullptr) throw EnvironmentError(ATTEST_KERNEL_SYMBOL "() gave no table");
  if (api->abi_version != ATTEST_KERNEL_ABI)
    throw EnvironmentError(
        fmt::format("abi_version: {} is not {}, this attest's; build the kernel with its kernel_api.h",
                    api->abi_version, ATTEST_KERNEL_ABI));
  return read_struct("attest_kernel_api", api, first_api_bytes);
}

attest_capability read_record(const attest_kernel_api& api) {
  if (api.capability == nullptr) throw EnvironmentError("capability: the table points to no record");
  return read_struct("attest_capability", api.capability, first_capability_bytes);
}

Capability read_capability(const attest_capability& record) {
  Capability capability;
  capability.name = printable("name", record.name, 1, 64);
  if (record.description != nullptr) capability.description = printable("description", record.description, 0, 256);
  if (record.device != ATTEST_DEVICE_CPU && record.device != ATTEST_DEVICE_CUDA)
    refuse("device", fmt::format("{}", record.device), "is neither 0 (CPU) nor 1 (CUDA)");
  capability.device = record.device == ATTEST_DEVICE_CUDA ? "cuda" : "cpu";
  if (record.dtypes == 0) refuse("dtypes", "0", "names none of fp16, bf16, fp32, fp8_e4m3, fp8_e5m2");
  check_bits("dtypes", record.dtypes, (1U << std::size(all_dtypes)) - 1);
  for (const Dtype dtype : all_dtypes)
    if (record.dtypes >> static_cast<int>(dtype) & 1) capability.dtypes.push_back(dtype);
  if ((record.channels & ATTEST_CHANNEL_O) == 0)
    refuse("channels", fmt::format("{:#x}", record.channels), "is without ATTEST_CHANNEL_O");
  check_bits("channels", record.channels, ATTEST_CHANNEL_O | ATTEST_CHANNEL_LSE | ATTEST_CHANNEL_GRADIENTS);
  capability.offers_lse = record.channels & ATTEST_CHANNEL_LSE;
  capability.offers_gradients = record.channels & ATTEST_CHANNEL_GRADIENTS;
  for (std::uint64_t left = record.features; left != 0; left &= left - 1)
    capability.features.emplace_back(feature_word(std::uint64_t{1} << std::countr_zero(left)));
  check_bits("causal", record.causal, 1U << ATTEST_CAUSAL_BOTTOM_RIGHT | 1U << ATTEST_CAUSAL_TOP_LEFT);
  for (const Causal causal : {Causal::bottom_right, Causal::top_left})
    if (record.causal >> static_cast<int>(causal) & 1)
      capability.features.push_back(fmt::format("causal={}", to_string(causal)));
  check_bits("bitwise", record.bitwise,
             ATTEST_BITWISE_BATCH | ATTEST_BITWISE_GQA | ATTEST_BITWISE_LAYOUT | ATTEST_BITWISE_REPEAT);
  capability.bitwise_batch = record.bitwise & ATTEST_BITWISE_BATCH;
  capability.bitwise_gqa = record.bitwise & ATTEST_BITWISE_GQA;
  capability.bitwise_layout = record.bitwise & ATTEST_BITWISE_LAYOUT;
  capability.bitwise_repeat = record.bitwise & ATTEST_BITWISE_REPEAT;
  if (record.arithmetic < ATTEST_ARITHMETIC_FLASH || record.arithmetic > ATTEST_ARITHMETIC_FP32)
    refuse("arithmetic", fmt::format("{}", record.arithmetic), "is none of 0 (flash), 1 (unfused), 2 (fp32)");
  capability.isolates_values = record.isolates_values != 0;
  if (!std::isfinite(record.lse_base) || record.lse_base <= 0 || record.lse_base == 1)
    refuse("lse_base", fmt::format("{}", record.lse_base), "is no base of a logarithm");
  capability.lse_base = record.lse_base;
  if (std::isnan(record.lse_of_empty_row)) refuse("lse_of_empty_row", "nan", "is no number");
  capability.lse_of_empty_row = record.lse_of_empty_row;
  return capability;
}

}  // namespace attest
