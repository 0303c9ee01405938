// Calls of FlashAttention 2 and 3 and of cuDNN on an H200 and an H100 as hardware counters saw them: the files beside
// this one, and the cases that they were.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "attest/problem/case.h"
#include "csv_rows.h"

namespace attest {

/// A row: the plan's name (or what an experiment was), the shape, and the counters by the profiler's names.
struct CountedCall {
  std::string kernel;
  std::string layout = "bshd";  // as the command line has it
  std::map<std::string, double> value;
  double at(const std::string& name) const { return value.at(name); }
};

/// The rows of a file as h200_more.md describes it: names in its first line, the kernel's first, of `words` columns.
/// Throws std::runtime_error where there is no such file.
inline std::vector<CountedCall> counted_calls(const std::string& file, std::size_t words = 1) {
  std::vector<CountedCall> calls;
  each_csv_row(file, [&](const std::vector<std::string>& names, const std::vector<std::string>& cells) {
    CountedCall& call = calls.emplace_back();
    for (std::size_t i = 0; i < words; ++i) call.kernel += (i == 0 ? "" : " ") + cells.at(i);
    for (std::size_t i = words; i < cells.size(); ++i)
      if (names.at(i) == "layout")
        call.layout = cells[i];
      else
        call.value[names.at(i)] = std::stod(cells[i]);
    if (call.value.contains("nheads")) call.value.try_emplace("nheads_k", call.at("nheads"));
    if (call.value.contains("seqlen")) call.value.try_emplace("seqlen_q", call.at("seqlen"));
  });
  return calls;
}

/// What was asked for.
inline Case case_of(const CountedCall& call) {
  Case c;
  Problem& p = c.problem;
  p.batch = static_cast<std::int64_t>(call.at("batch"));
  p.nheads = static_cast<std::int64_t>(call.at("nheads"));
  p.nheads_k = static_cast<std::int64_t>(call.at("nheads_k"));
  p.seqlen_q = static_cast<std::int64_t>(call.at("seqlen_q"));
  p.seqlen_k = static_cast<std::int64_t>(call.at("seqlen"));
  p.headdim = p.headdim_v = static_cast<std::int64_t>(call.at("headdim"));
  p.causal = call.at("causal") != 0 ? Causal::bottom_right : Causal::none;
  c.layout = layout_from_spec(call.layout);
  return c;
}

/// Bytes of O.
inline double output_bytes(const CountedCall& call) {
  return call.at("batch") * call.at("nheads") * call.at("seqlen_q") * call.at("headdim") * 2;
}

}  // namespace attest
