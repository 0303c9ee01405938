#include "attest/gpu/case_lists.h"

#include "attest/gpu/placement.h"

namespace attest {
namespace {

std::vector<std::int64_t> sums_of(const std::vector<std::int64_t>& lengths) {
  return lengths.empty() ? std::vector<std::int64_t>{} : cumulative(lengths);
}

}  // namespace

CaseLists case_lists(const Case& c) {
  const Problem& p = c.problem;
  CaseLists lists;
  lists.cu_seqlens_q = sums_of(p.varlen_q);
  lists.cu_seqlens_k = sums_of(p.varlen_k);
  lists.seqused_k = p.seqused_k;
  lists.document_ends = sums_of(p.documents);
  if (!lists.document_ends.empty()) lists.document_ends.erase(lists.document_ends.begin());
  if (c.layout.page_size > 0) {
    const PageTable table = page_table_of(c);
    for (const auto& row : table.rows) lists.page_table.insert(lists.page_table.end(), row.begin(), row.end());
    lists.pages_per_sequence = table.pages_per_sequence;
  }
  return lists;
}

}  // namespace attest
