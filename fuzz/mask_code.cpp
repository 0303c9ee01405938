#include "mask_code.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "attest/problem/splitmix64.h"
#include "attest/reference/sum_errors.h"

namespace attest {
namespace {

// Everything before O's own rounding: the division or reciprocal, and the factors by which splits are combined, whose
// exponents are differences of LSEs near ln(seqlen_k) <= 18 in fp32. Far below O's rounding where that matters.
constexpr double before_rounding = 0x1p-18;

double value(const Case& c, const MaskColumn& column, std::int64_t entry, std::int64_t key) {
  switch (column.kind) {
    case MaskColumn::Kind::bits:
      return std::ldexp(1.0, static_cast<int>(key - column.first));
    case MaskColumn::Kind::sum:
      return 1;
    case MaskColumn::Kind::sign:
      return (mask_signs(c.seed, key) >> column.first & 1) != 0 ? 1 : -1;
    case MaskColumn::Kind::origin:
      return (entry >> column.first & 1) == column.count ? 1 : 0;
  }
  return 0;
}

}  // namespace

MaskCode::MaskCode(const Problem& problem, const Numerics& n) {
  const int keys_log2 = std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(1, problem.seqlen_k)));
  const bool narrow = n.floor_out > 0x1p-100;  // fp16: normal numbers are 2^-14 to 2^15
  if (narrow) unit = std::ldexp(1.0, std::max(0, keys_log2 - 14));
  floor = narrow ? 0x1p-15 : 0x1p-60;
  // Sums of weights that were divided first are sums of rounded numbers.
  summed = before_rounding + (n.normalises_first ? sum_errors(n, problem.seqlen_k).g_pv : 0);
  rho = n.u_out / (1 + n.u_out) + summed + equal_weight_error(n, problem.seqlen_k);
  const int largest = narrow ? 16 - std::ilogb(unit) : 16;
  while (keys_per_column < largest && (std::ldexp(1.0, keys_per_column + 1) - 1) * rho < 0.5) ++keys_per_column;
}

std::uint32_t mask_signs(std::uint64_t seed, std::int64_t key) {
  return static_cast<std::uint32_t>(scramble((seed + 1) * splitmix64_step ^ static_cast<std::uint64_t>(key)) >> 32);
}

int origin_bits(const Problem& p) { return std::bit_width(static_cast<std::uint64_t>(p.batch * p.nheads_k - 1)); }

void fill_values(const Case& c, const MaskCode& code, std::span<const MaskColumn> columns, Tensor& v) {
  const Problem& p = c.problem;
  std::fill(v.values.begin(), v.values.end(), 0.0);
  for (std::size_t at = 0; at < columns.size(); ++at) {
    const MaskColumn& column = columns[at];
    const bool some = column.kind == MaskColumn::Kind::bits || column.kind == MaskColumn::Kind::sum;
    const std::int64_t begin = some ? column.first : 0, end = some ? column.first + column.count : p.seqlen_k;
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t h = 0; h < p.nheads_k; ++h)
        for (std::int64_t j = begin; j < end; ++j)
          v.at(b, j, h, static_cast<std::int64_t>(at)) = code.unit * value(c, column, b * p.nheads_k + h, j);
  }
}

}  // namespace attest
