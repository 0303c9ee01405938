// A case in a line, as a person would say it.
#pragma once
#include <string>

#include "attest/problem/case.h"

namespace attest {

/// "batch 1, 64 heads on 8, 8192 x 8192 tokens, headdim 128, bf16, causal bottom-right, softcap 50".
std::string case_words(const Case& c);

}  // namespace attest
