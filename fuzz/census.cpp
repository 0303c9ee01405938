#include "attest/fuzz/census.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "attest/fuzz/generators.h"

namespace attest {

Census::Census() : counts_(features().size()) {}

void Census::add(const Case& c) {
  ++cases_;
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += features()[i].has(c);
  ++octaves_[std::bit_width(static_cast<std::uint64_t>(work_of(c.problem)))];
}

void Census::merge(const Census& other) {
  cases_ += other.cases_;
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  for (std::size_t i = 0; i < octaves_.size(); ++i) octaves_[i] += other.octaves_[i];
}

std::int64_t Census::count(std::string_view feature) const {
  const auto all = features();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Feature& f) { return f.name == feature; });
  if (at == all.end()) throw std::out_of_range(fmt::format("no feature '{}'", feature));
  return counts_[static_cast<std::size_t>(at - all.begin())];
}

std::string Census::to_string() const {
  std::string text = fmt::format("Distribution of {} cases\n", cases_);
  const double percent = cases_ ? 100.0 / static_cast<double>(cases_) : 0;
  for (std::size_t i = 0; i < counts_.size(); ++i)
    text += fmt::format("  {:<40}{:5.1f} %{}", features()[i].name, static_cast<double>(counts_[i]) * percent,
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
  for (std::size_t i = 0; i < counts_.size(); ++i) json["features"][features()[i].name] = counts_[i];
  json["work_log2"] = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < octaves_.size(); ++i)
    if (octaves_[i] > 0) json["work_log2"][i == 0 ? "none" : fmt::format("{}", i - 1)] = octaves_[i];
  return json;
}

}  // namespace attest
