// The arrays of `attest reference`: which there are, their shapes, and packed sequences.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "attest/problem/case.h"
#include "attest/reference/inputs.h"
#include "flags.h"

namespace attest::tools {

void declare_array_flags(Flags& flags);

/// Whether any array was given. Throws InvalidInput where some of --q, --k, --v are missing.
bool arrays_given(const Flags& flags);

struct CaseWithInputs {
  Case c;
  Inputs inputs;
};

/// Reads the arrays; extents that no flag gives become fields, the others must agree with them. Throws InvalidInput
/// naming the array, the extent, its value and the expected one.
CaseWithInputs read_arrays(const Flags& flags, nlohmann::ordered_json fields);

/// (batch, seqlen, heads, dim) without the rows past each length, as (total, heads, dim); `lengths` empty: as it is.
std::pair<std::vector<std::int64_t>, std::vector<double>> packed(const Tensor& tensor,
                                                                 const std::vector<std::int64_t>& lengths);

/// LSE as (batch, nheads, seqlen_q), or packed as (nheads, total_q).
std::pair<std::vector<std::int64_t>, std::vector<double>> packed_lse(const Tensor& lse,
                                                                     const std::vector<std::int64_t>& lengths);

}  // namespace attest::tools
