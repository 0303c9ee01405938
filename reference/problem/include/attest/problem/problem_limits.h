// Between which values a problem's whole numbers must be, whatever the others are.
#pragma once
#include <cstdint>
#include <string_view>

#include "attest/problem/problem.h"

namespace attest {

struct FieldLimits {
  std::string_view field;
  std::int64_t Problem::*member;
  std::int64_t low, high;
};

inline constexpr std::int64_t longest_sequence = std::int64_t{1} << 26, widest_window = std::int64_t{1} << 30;

inline constexpr FieldLimits problem_limits[] = {
    {"batch", &Problem::batch, 1, 1 << 20},
    {"nheads", &Problem::nheads, 1, 1 << 16},
    {"nheads_k", &Problem::nheads_k, 1, 1 << 16},
    {"seqlen_q", &Problem::seqlen_q, 0, longest_sequence},
    {"seqlen_k", &Problem::seqlen_k, 0, longest_sequence},
    {"headdim", &Problem::headdim, 1, 256},
    {"headdim_v", &Problem::headdim_v, 1, 256},
    {"window_left", &Problem::window_left, -1, widest_window},
    {"window_right", &Problem::window_right, -1, widest_window},
    {"prefix", &Problem::prefix, 0, longest_sequence},
};

}  // namespace attest
