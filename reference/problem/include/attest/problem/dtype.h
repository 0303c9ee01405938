// The element types of attention inputs and outputs.
#pragma once
#include <cstdint>
#include <string_view>

namespace attest {

enum class Dtype : std::uint8_t { fp16, bf16, fp32 };

inline constexpr Dtype all_dtypes[] = {Dtype::fp16, Dtype::bf16, Dtype::fp32};

constexpr int bytes_of(Dtype dtype) { return dtype == Dtype::fp32 ? 4 : 2; }

constexpr std::string_view to_string(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp16:
      return "fp16";
    case Dtype::bf16:
      return "bf16";
    case Dtype::fp32:
      return "fp32";
  }
  return "?";
}

/// The dtype of that name; throws InvalidInput naming `dtype` otherwise.
Dtype dtype_from_string(std::string_view name);

}  // namespace attest
