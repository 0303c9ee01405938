// One CTA's share of a problem: the numbers that it is launched with.
#pragma once
#include <cstdint>

namespace attest {

/// Query i, which is row i unless heads are packed, is aligned with key i + diagonal; it sees keys from i + diagonal -
/// left to i + diagonal + right, where left, right < 0 mean unlimited (a causal mask is right = 0), and the keys below
/// `prefix`, both within its document. Lengths are those of the CTA's batch entry.
struct Work {
  int q_tile = 0;
  int seqlen_q = 0;  // rows: queries, times packed heads
  int seqlen_k = 0;
  int diagonal = 0;
  int left = -1;
  int right = -1;
  bool causal = false;
  int prefix = 0;
  const std::int32_t* document_ends = nullptr;  // of positions of queries and keys alike; ascending
  int num_documents = 0;                        // 0: one document
  int split = 0;                                // which share of the key tiles
  int page_size = 0;                            // 0: K and V are not paged

  friend constexpr bool operator==(const Work&, const Work&) = default;
};

/// One head of one batch entry, as far as addresses of its rows in LSE and in the workspace of splits depend on it.
struct HeadPlace {
  std::int64_t batch = 0, head = 0;
  std::int64_t num_batches = 1, nheads = 1;
  std::int64_t seqlen_q = 0;                // of the longest batch entry
  bool packed = false;                      // rows of all entries follow each other
  std::int64_t first_row = 0, total_q = 0;  // packed: of this entry, and of all
};

}  // namespace attest
