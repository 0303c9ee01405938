// A Case: a Problem, where its tensors lie, and a recipe for its inputs. It prints itself, reads itself back from
// canonical JSON, and has one command line.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "attest/problem/problem.h"

namespace attest {

/// Where the tensors lie. The last dimension is contiguous. Everything the gaps leave out is outside the logical
/// domain: NaN before a run, untouched after it.
///   Sequences of one length   [batch, seqlen, heads, dim], or [batch, heads, seqlen, dim] as bhsd
///   varlen                    packed: [total, heads, dim], or [heads, total, dim]; LSE [nheads, total_q]
///   paged K and V             [num_pages, page_size, nheads_k, dim], or [num_pages, nheads_k, page_size, dim]
struct Layout {
  enum class Order : std::uint8_t { bshd, bhsd };
  Order order = Order::bshd;
  std::int64_t row_gap = 0;      // elements between the end of one innermost row (headdim values) and the next
  std::int64_t seq_gap = 0;      // rows of padding after each sequence, packed tensor or page
  std::int64_t base_offset = 0;  // elements by which the first value is off the allocation's 256-byte alignment
  std::int64_t page_size = 0;    // keys a page; 0: K and V are not paged
  // For each batch entry the pages that hold its keys, in order; empty: a shuffled table drawn from the case's seed.
  std::vector<std::vector<std::int64_t>> page_table{};
  std::int64_t num_pages = 0;  // 0: as many as the table needs, and some that nobody uses

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// "bshd" or "bhsd", then ",row_gap=N" and ",seq_gap=N" where they are not 0: the SPEC of --layout. Base offset and
/// pages have flags of their own.
std::string layout_spec(const Layout& layout);
Layout layout_from_spec(std::string_view spec);

/// How the inputs are drawn. Every value is rounded to the problem's dtype before anybody sees it.
enum class Distribution : std::uint8_t {
  normal,      // Q, K, V standard normal
  large,       // normal, with Q and K scaled so that scores have a deviation of 125: +-100 to +-500; so
               // is the sink, and the bias has entries of -Inf and of the lowest finite number
  shift,       // normal, with one constant of +-20 to +-320 added to all scores of a row: the last component of every
               // key is the same; at headdim 1 a row has nothing but that constant
  zero_q,      // Q = 0: every score 0, LSE = ln(visible keys), O the mean of the visible V
  one_v,       // V = 1: O = 1 wherever a key is visible
  one_hot_v,   // V[j] = e_(j mod headdim_v): O reads P, folded
  non_finite,  // normal, with a NaN or Inf in one row of Q in 16, one of K in 256 and one of V in 64
  orthogonal_dout,  // normal, with each row of dO orthogonal to that of O but for rounding
};
inline constexpr Distribution all_distributions[] = {
    Distribution::normal, Distribution::large,     Distribution::shift,      Distribution::zero_q,
    Distribution::one_v,  Distribution::one_hot_v, Distribution::non_finite, Distribution::orthogonal_dout};
std::string_view to_string(Distribution distribution);
Distribution distribution_from_string(std::string_view name);

struct Case {
  Problem problem;
  Layout layout;
  Distribution inputs = Distribution::normal;
  std::uint64_t seed = 0;
  std::int64_t num_splits = 1;  // shares that the keys of a row are split into, then combined
  bool backward = false;        // the gradients are asked for as well
  bool deterministic = false;   // and must be the same bits in every run

  friend bool operator==(const Case&, const Case&) = default;
};

/// validate(problem), and the layout: 0 <= row_gap, seq_gap, base_offset <= 2^20, no tensor that spans 2^40 elements or
/// more with its gaps, 0 <= page_size <= 2^20 and none beside varlen_k, a page table with a row for each batch entry
/// that holds its keys in pages below num_pages, none of them twice; 1 <= num_splits <= 256.
void validate(const Case& c);

/// Canonical JSON: {"schema": "attest/case/1", every field by its name on the command line with '_' for '-'}. Fields
/// that only some cases have are left out where they have their default.
nlohmann::ordered_json to_json(const Case& c);

/// Reads what to_json wrote; fields left out take their defaults (headdim_v: headdim; nheads_k: nheads; seqlen_k:
/// seqlen_q; with varlen: batch and seqlens from its lengths). In place of varlen_q it takes cu_seqlens_q, the running
/// sums from 0 that kernels are handed, with total_q beside it if wanted; likewise for k.
/// Throws InvalidInput naming an unknown, mistyped or out-of-range field or a newer schema. The result is validated.
Case case_from_json(const nlohmann::ordered_json& json);
Case case_from_json_text(std::string_view text);

/// The names of the fields that case_from_json reads.
std::vector<std::string> case_field_names();

/// The flags of the command line that give this case, non-default ones only, such as
/// "--batch 2 --nheads 4 --nheads-k 2 --seqlen-q 3 --seqlen-k 65 --headdim 64 --dtype fp16 --causal=top-left --seed 7".
std::string command_line(const Case& c);

}  // namespace attest
