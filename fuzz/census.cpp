#include "attest/fuzz/census.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "attest/fuzz/generators.h"

namespace attest {
namespace {

template <Dtype dtype>
bool has_dtype(const Case& c) {
  return c.problem.dtype == dtype;
}
template <Distribution inputs>
bool has_inputs(const Case& c) {
  return c.inputs == inputs;
}

const std::vector<Feature>& table() {
  static const std::vector<Feature> features = {
      {"fp16", has_dtype<Dtype::fp16>},
      {"bf16", has_dtype<Dtype::bf16>},
      {"fp32", has_dtype<Dtype::fp32>},
      {"causal bottom-right", [](const Case& c) { return c.problem.causal == Causal::bottom_right; }},
      {"causal top-left", [](const Case& c) { return c.problem.causal == Causal::top_left; }},
      {"window", [](const Case& c) { return c.problem.window_left >= 0 || c.problem.window_right >= 0; }},
      {"window on both sides", [](const Case& c) { return c.problem.window_left >= 0 && c.problem.window_right >= 0; }},
      {"batch > 1", [](const Case& c) { return c.problem.batch > 1; }},
      {"GQA or MQA", [](const Case& c) { return c.problem.nheads_k < c.problem.nheads; }},
      {"group other than nheads_k",
       [](const Case& c) {
         const Problem& p = c.problem;
         return p.nheads_k > 1 && p.nheads_k < p.nheads && p.nheads / p.nheads_k != p.nheads_k;
       }},
      {"headdim_v other than headdim", [](const Case& c) { return c.problem.headdim_v != c.problem.headdim; }},
      {"headdim no multiple of 8", [](const Case& c) { return c.problem.headdim % 8 != 0; }},
      {"softmax_scale given", [](const Case& c) { return c.problem.softmax_scale.has_value(); }},
      {"softmax_scale <= 0", [](const Case& c) { return c.problem.softmax_scale.value_or(1) <= 0; }},
      {"seqlen_q = 0", [](const Case& c) { return c.problem.seqlen_q == 0; }},
      {"seqlen_k = 0", [](const Case& c) { return c.problem.seqlen_k == 0; }},
      {"seqlen_q = 1", [](const Case& c) { return c.problem.seqlen_q == 1; }},
      {"seqlen_k > 128", [](const Case& c) { return c.problem.seqlen_k > 128; }},
      {"seqlen_k no multiple of 16", [](const Case& c) { return c.problem.seqlen_k % 16 != 0; }},
      {"seqlen_q > seqlen_k + 128", [](const Case& c) { return c.problem.seqlen_q > c.problem.seqlen_k + 128; }},
      {"another order", [](const Case& c) { return c.layout.order != Layout::Order::bshd; }},
      {"gaps", [](const Case& c) { return c.layout.row_gap > 0 || c.layout.seq_gap > 0; }},
      {"base offset", [](const Case& c) { return c.layout.base_offset > 0; }},
      {"inputs normal", has_inputs<Distribution::normal>},
      {"inputs large", has_inputs<Distribution::large>},
      {"inputs shift", has_inputs<Distribution::shift>},
      {"inputs zero_q", has_inputs<Distribution::zero_q>},
      {"inputs one_v", has_inputs<Distribution::one_v>},
      {"inputs one_hot_v", has_inputs<Distribution::one_hot_v>},
  };
  return features;
}

}  // namespace

std::span<const Feature> features() { return table(); }

Census::Census() : counts_(table().size()) {}

void Census::add(const Case& c) {
  ++cases_;
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += table()[i].has(c);
  ++octaves_[std::bit_width(static_cast<std::uint64_t>(work_of(c.problem)))];
}

void Census::merge(const Census& other) {
  cases_ += other.cases_;
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  for (std::size_t i = 0; i < octaves_.size(); ++i) octaves_[i] += other.octaves_[i];
}

std::int64_t Census::count(std::string_view feature) const {
  const auto at = std::find_if(table().begin(), table().end(), [&](const Feature& f) { return f.name == feature; });
  if (at == table().end()) throw std::out_of_range(fmt::format("no feature '{}'", feature));
  return counts_[static_cast<std::size_t>(at - table().begin())];
}

std::string Census::to_string() const {
  std::string text = fmt::format("Distribution of {} cases\n", cases_);
  const double percent = cases_ ? 100.0 / static_cast<double>(cases_) : 0;
  for (std::size_t i = 0; i < counts_.size(); ++i)
    text += fmt::format("  {:<30}{:5.1f} %{}", table()[i].name, static_cast<double>(counts_[i]) * percent,
                        i % 2 == 1 || i + 1 == counts_.size() ? "\n" : "    ");
  text += "  work (multiply-adds of both products)\n";
  const std::int64_t most = *std::max_element(octaves_.begin(), octaves_.end());
  for (std::size_t i = 0; i < octaves_.size(); ++i)
    if (octaves_[i] > 0)
      text += fmt::format("  {:>8} {:6} {}\n", i == 0 ? "none" : fmt::format("2^{}", i - 1), octaves_[i],
                          std::string(static_cast<std::size_t>((octaves_[i] * 40 + most - 1) / most), '#'));
  return text;
}

nlohmann::ordered_json Census::to_json() const {
  nlohmann::ordered_json json;
  json["cases"] = cases_;
  for (std::size_t i = 0; i < counts_.size(); ++i) json["features"][table()[i].name] = counts_[i];
  json["work_log2"] = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < octaves_.size(); ++i)
    if (octaves_[i] > 0) json["work_log2"][i == 0 ? "none" : fmt::format("{}", i - 1)] = octaves_[i];
  return json;
}

}  // namespace attest
