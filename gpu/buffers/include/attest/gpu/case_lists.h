// The integers that a forward is handed beside its tensors.
#pragma once
#include <cstdint>
#include <vector>

#include "attest/problem/case.h"

namespace attest {

/// As ForwardArgs has them; empty where the case has no use for one.
struct CaseLists {
  std::vector<std::int64_t> cu_seqlens_q, cu_seqlens_k, seqused_k, page_table, document_ends;
  std::int64_t pages_per_sequence = 0;
};
CaseLists case_lists(const Case& c);

}  // namespace attest
