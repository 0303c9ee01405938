// What the scores of one head depend on besides Q and K.
#pragma once
#include <cstdint>

namespace attest {

/// score = softcap tanh(dot * scale / softcap) - slope * distance + bias, each term where the plan has it; `distance`
/// is from the key that a query is aligned with.
struct ScoreNumbers {
  float scale = 1;  // softmax scale
  float softcap = 0;
  float slope = 0;
  float sink = 0;               // a score that every row of the head has beside its keys'
  const float* bias = nullptr;  // of the head, by row and key
  std::int64_t bias_row_stride = 0;
};

}  // namespace attest
