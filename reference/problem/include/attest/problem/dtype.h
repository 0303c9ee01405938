// The element types of attention inputs and outputs.
#pragma once
#include <cstdint>
#include <string_view>

namespace attest {

/// The 8-bit formats are OCP's: e4m3 without infinities, largest 448; e5m2 with them, largest finite 57344.
enum class Dtype : std::uint8_t { fp16, bf16, fp32, fp8_e4m3, fp8_e5m2 };

inline constexpr Dtype all_dtypes[] = {Dtype::fp16, Dtype::bf16, Dtype::fp32, Dtype::fp8_e4m3, Dtype::fp8_e5m2};

constexpr bool is_fp8(Dtype dtype) { return dtype == Dtype::fp8_e4m3 || dtype == Dtype::fp8_e5m2; }

constexpr int bytes_of(Dtype dtype) { return dtype == Dtype::fp32 ? 4 : is_fp8(dtype) ? 1 : 2; }

/// What O, dO and the gradients are held in: the inputs' dtype, bf16 beside 8-bit inputs.
constexpr Dtype output_dtype(Dtype dtype) { return is_fp8(dtype) ? Dtype::bf16 : dtype; }

constexpr std::string_view to_string(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp16:
      return "fp16";
    case Dtype::bf16:
      return "bf16";
    case Dtype::fp32:
      return "fp32";
    case Dtype::fp8_e4m3:
      return "fp8_e4m3";
    case Dtype::fp8_e5m2:
      return "fp8_e5m2";
  }
  return "?";
}

/// The dtype of that name; throws InvalidInput naming `dtype` otherwise.
Dtype dtype_from_string(std::string_view name);

}  // namespace attest
