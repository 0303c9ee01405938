// NumPy's .npy files, the formats 1.0 to 3.0 of numpy.lib.format: a magic, a version, a header that is a Python dict
// literal, then the array.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attest::tools {

struct NpyArray {
  std::vector<std::int64_t> shape;
  std::vector<double> values;  // row-major
};

/// Reads little-endian float16, float32 or float64 in C order. `field` and `file` are for errors: throws InvalidInput
/// for a truncated file, trailing bytes, another dtype, big-endian or Fortran order, each by name.
NpyArray parse_npy(std::string_view field, std::string_view file, std::string_view bytes);

/// A .npy file (version 1.0) of little-endian float64.
std::string npy_bytes(const std::vector<std::int64_t>& shape, const std::vector<double>& values);

}  // namespace attest::tools
