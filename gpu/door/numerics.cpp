#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "api_numerics.h"

namespace attest {
namespace {

constexpr double most_roundoff = 0.25;
constexpr std::int64_t most_keys = std::int64_t{1} << 26;

struct Field {
  const char* name;
  double Numerics::*ours;
  double attest_numerics::*theirs;
  double low, high;
};

constexpr Field fields[] = {
    {"u_S", &Numerics::u_S, &attest_numerics::u_S, 0, most_roundoff},
    {"u_P", &Numerics::u_P, &attest_numerics::u_P, 0, most_roundoff},
    {"a_P", &Numerics::a_P, &attest_numerics::a_P, 0, most_roundoff},
    {"min_normal_P", &Numerics::min_normal_P, &attest_numerics::min_normal_P, 0, most_roundoff},
    {"max_P", &Numerics::max_P, &attest_numerics::max_P, 1, 0x1p16},
    {"u_acc", &Numerics::u_acc, &attest_numerics::u_acc, 0, most_roundoff},
    {"eps_exp", &Numerics::eps_exp, &attest_numerics::eps_exp, 0, most_roundoff},
    {"eps_tanh", &Numerics::eps_tanh, &attest_numerics::eps_tanh, 0, most_roundoff},
    {"lse_max_roundings", &Numerics::lse_max_roundings, &attest_numerics::lse_max_roundings, 0, 64},
    {"u_out", &Numerics::u_out, &attest_numerics::u_out, 0, most_roundoff},
    {"floor_out", &Numerics::floor_out, &attest_numerics::floor_out, 0, most_roundoff},
    {"u_P_backward", &Numerics::u_P_backward, &attest_numerics::u_P_backward, 0, most_roundoff},
    {"a_P_backward", &Numerics::a_P_backward, &attest_numerics::a_P_backward, 0, most_roundoff},
    {"u_dS", &Numerics::u_dS, &attest_numerics::u_dS, 0, most_roundoff},
    {"a_dS", &Numerics::a_dS, &attest_numerics::a_dS, 0, most_roundoff},
    {"u_share", &Numerics::u_share, &attest_numerics::u_share, 0, most_roundoff},
    {"floor_share", &Numerics::floor_share, &attest_numerics::floor_share, 0, most_roundoff},
};

// NaN is outside as well.
double checked(const char* field, double value, double low, double high) {
  if (!(value >= low && value <= high))
    throw std::runtime_error(fmt::format("numerics.{}: {} is outside {} to {}", field, value, low, high));
  return value;
}

int checked_count(const char* field, std::int64_t value, std::int64_t high) {
  return static_cast<int>(checked(field, static_cast<double>(value), 1, static_cast<double>(high)));
}

}  // namespace

Numerics numerics_of_scheme(std::int32_t arithmetic, const Case& c) {
  Numerics n = flash_numerics(c.problem.dtype);
  n.num_splits = static_cast<int>(c.num_splits);
  if (arithmetic == ATTEST_ARITHMETIC_UNFUSED) {
    n.name = fmt::format("unfused {}", to_string(c.problem.dtype));
    n.u_S = n.u_P;
    n.smallest_tile = static_cast<int>(most_keys);  // a row's maximum is known before its first exponential
  }
  if (arithmetic == ATTEST_ARITHMETIC_FP32) {
    Numerics fp32 = flash_numerics(Dtype::fp32, 1);
    fp32.name = fmt::format("fp32 over {}", to_string(c.problem.dtype));
    fp32.u_out = n.u_out;
    fp32.floor_out = n.floor_out;
    fp32.num_splits = n.num_splits;
    fp32.eps_tanh = 0x1p-22;  // a library's tanhf
    fp32.chain = 1;           // one serial sum
    return fp32;
  }
  return n;
}

attest_numerics to_api(const Numerics& n) {
  attest_numerics api{};
  api.struct_size = sizeof api;
  api.chain = n.chain;
  api.smallest_tile = n.smallest_tile;
  api.num_splits = n.num_splits;
  for (const Field& field : fields) api.*field.theirs = n.*field.ours;
  api.normalises_first = n.normalises_first;
  return api;
}

Numerics numerics_of(const attest_numerics& api, std::string name) {
  Numerics n;
  n.name = std::move(name);
  n.chain = checked_count("chain", api.chain, most_keys);
  n.smallest_tile = checked_count("smallest_tile", api.smallest_tile, most_keys);
  n.num_splits = checked_count("num_splits", api.num_splits, 256);
  n.normalises_first = checked("normalises_first", api.normalises_first, 0, 1) != 0;
  for (const Field& field : fields) n.*field.ours = checked(field.name, api.*field.theirs, field.low, field.high);
  return n;
}

}  // namespace attest
