#include "attest/fuzz/coverage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attest/fuzz/census.h"
#include "attest/fuzz/properties.h"

namespace attest {
namespace {

// The census counts kinds of inputs among its features, under this prefix; here they are an axis of their own.
constexpr std::string_view inputs_prefix = "inputs ";

const std::vector<const Feature*>& feature_table() {
  static const std::vector<const Feature*> table = [] {
    std::vector<const Feature*> found;
    for (const Feature& feature : features())
      if (!feature.name.starts_with(inputs_prefix)) found.push_back(&feature);
    return found;
  }();
  return table;
}

std::vector<std::string> feature_names() {
  std::vector<std::string> names;
  for (const Feature* feature : feature_table()) names.push_back(feature->name);
  return names;
}

std::vector<std::string> inputs_names() {
  std::vector<std::string> names;
  for (const Distribution inputs : all_distributions) names.emplace_back(to_string(inputs));
  return names;
}

std::vector<std::string> property_names() {
  std::vector<std::string> names;
  for (const Property& property : properties()) names.emplace_back(property.name);
  return names;
}

nlohmann::ordered_json pairs_of(const std::vector<Coverage::Gap>& gaps) {
  auto json = nlohmann::ordered_json::array();
  for (const Coverage::Gap& gap : gaps) json.push_back({gap.first, gap.second});
  return json;
}

}  // namespace

Coverage::Table::Table(std::vector<std::string> r, std::vector<std::string> c)
    : rows(std::move(r)), columns(std::move(c)), tried(rows.size() * columns.size()), met(tried.size()) {}

void Coverage::Table::add(std::size_t row, std::size_t column, bool was_tried) {
  ++met[row * columns.size() + column];
  tried[row * columns.size() + column] += was_tried;
}

std::vector<Coverage::Gap> Coverage::Table::gaps() const {
  std::vector<Gap> found;
  for (std::size_t at = 0; at < tried.size(); ++at)
    if (tried[at] == 0) found.push_back({rows[at / columns.size()], columns[at % columns.size()], met[at]});
  return found;
}

std::vector<std::size_t> Coverage::Table::empty_rows() const {
  std::vector<std::size_t> found;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto first = tried.begin() + static_cast<std::ptrdiff_t>(row * columns.size());
    if (std::all_of(first, first + static_cast<std::ptrdiff_t>(columns.size()), [](auto n) { return n == 0; }))
      found.push_back(row);
  }
  return found;
}

Coverage::Coverage()
    : feature_inputs_(feature_names(), inputs_names()),
      feature_property_(feature_names(), property_names()),
      inputs_property_(inputs_names(), property_names()) {}

void Coverage::add(const Case& c, std::span<const Property* const> judged) {
  const auto* const kind = std::find(std::begin(all_distributions), std::end(all_distributions), c.inputs);
  const auto inputs = static_cast<std::size_t>(kind - std::begin(all_distributions));
  const auto& table = feature_table();
  std::vector<std::size_t> held;
  for (std::size_t f = 0; f < table.size(); ++f)
    if (table[f]->has(c)) held.push_back(f);
  for (const std::size_t f : held) feature_inputs_.add(f, inputs, !judged.empty());
  const auto all = properties();
  for (std::size_t p = 0; p < all.size(); ++p) {
    if (!all[p].applies(c)) continue;
    const bool was = std::find(judged.begin(), judged.end(), &all[p]) != judged.end();
    inputs_property_.add(inputs, p, was);
    for (const std::size_t f : held) feature_property_.add(f, p, was);
  }
}

std::vector<Coverage::Gap> Coverage::untried_feature_inputs() const { return feature_inputs_.gaps(); }
std::vector<Coverage::Gap> Coverage::untried_feature_property() const { return feature_property_.gaps(); }
std::vector<Coverage::Gap> Coverage::untried_inputs_property() const { return inputs_property_.gaps(); }
std::size_t Coverage::pairs() const {
  return feature_inputs_.tried.size() + feature_property_.tried.size() + inputs_property_.tried.size();
}

std::string Coverage::to_string() const {
  std::vector<std::string> alone;  // tried with nothing: one word instead of a pair with everything
  for (const std::size_t row : feature_inputs_.empty_rows()) alone.push_back(feature_inputs_.rows[row]);
  for (const std::size_t row : inputs_property_.empty_rows()) alone.push_back("inputs " + inputs_property_.rows[row]);
  std::size_t untried = 0, impossible = 0;
  std::vector<std::string> listed;
  const auto list = [&](const std::vector<Gap>& gaps, std::string_view prefix) {
    untried += gaps.size();
    for (const Gap& gap : gaps) {
      const std::string first = fmt::format("{}{}", prefix, gap.first);
      if (std::find(alone.begin(), alone.end(), first) != alone.end()) continue;
      if (gap.met > 0)
        listed.push_back(fmt::format("{} x {}", first, gap.second));
      else
        ++impossible;
    }
  };
  list(feature_inputs_.gaps(), "");
  list(feature_property_.gaps(), "");
  list(inputs_property_.gaps(), inputs_prefix);
  std::string text = fmt::format("Coverage: {} features x {} kinds of inputs x {} properties: {} of {} pairs tried\n",
                                 feature_inputs_.rows.size(), feature_inputs_.columns.size(),
                                 feature_property_.columns.size(), pairs() - untried, pairs());
  if (!alone.empty()) text += fmt::format("  never tried: {}\n", fmt::join(alone, ", "));
  constexpr std::size_t most = 12;
  const std::size_t left_out = listed.size() > most ? listed.size() - most : 0;
  listed.resize(listed.size() - left_out);
  if (!listed.empty())
    text += fmt::format("  never together, though cases allowed it: {}{}\n", fmt::join(listed, ", "),
                        left_out > 0 ? fmt::format(", and {} more", left_out) : "");
  if (impossible > 0) text += fmt::format("  {} pairs that no case offered (--json lists them)\n", impossible);
  return text;
}

nlohmann::ordered_json Coverage::to_json() const {
  const auto inputs = untried_feature_inputs();
  const auto property = untried_feature_property();
  const auto both = untried_inputs_property();
  nlohmann::ordered_json json;
  json["pairs"] = pairs();
  json["tried"] = pairs() - inputs.size() - property.size() - both.size();
  json["features"] = feature_inputs_.rows;
  json["inputs"] = feature_inputs_.columns;
  json["properties"] = feature_property_.columns;
  json["untried"]["feature_inputs"] = pairs_of(inputs);
  json["untried"]["feature_property"] = pairs_of(property);
  json["untried"]["inputs_property"] = pairs_of(both);
  return json;
}

}  // namespace attest
