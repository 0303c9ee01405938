// A channel: one tensor that a kernel wrote beside its truth, and what its extents mean.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attest/problem/dtype.h"
#include "attest/problem/problem.h"
#include "attest/reference/compare.h"

namespace attest {

using Element = std::array<std::int64_t, 4>;

struct Channel {
  enum class Of : std::uint8_t { query_rows, lse, key_rows, heads, pairs };

  std::string_view name;  // "o", "lse", "dq", "dk", "dv", "dsink", "dbias"
  Of of;
  Dtype dtype;
  const Tensor *truth, *bound;
  const Tensor* got;
  std::int64_t unwritten;
};

/// The channels that the kernel offers, o first.
std::vector<Channel> channels_of(const Problem& problem, const Truth& truth, const Outputs& outputs);

Element position(const Tensor& tensor, std::int64_t n);

/// Whether the element belongs to a query and a key that its batch entry has; nothing else is judged.
bool inside(const Problem& problem, const Channel& channel, const Element& element);

/// "o[b=0, i=3, h=1, d=7]".
std::string element_name(const Channel& channel, const Element& element);

/// The keys that the element's query sees, or for a gradient of K or V the queries that see its key, as ranges: "0-63,
/// 70", "none"; nothing for dsink.
std::string visible_of(const Problem& problem, const Channel& channel, const Element& element);

}  // namespace attest
