#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "attest/simulator/comparison.h"
#include "html_page.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

Json value(const std::optional<double>& x) { return x ? Json(*x) : Json(nullptr); }

Json call_json(const Comparison& comparison) {
  Json predicted = Json::array(), measured = Json::array();
  for (const ComparedFigure& figure : comparison.figures) {
    predicted.push_back(value(figure.predicted));
    measured.push_back(value(figure.measured));
  }
  return {{"words", fmt::format("{}, {}", comparison.call.kernel, page_words(comparison.call.c))},
          {"mechanism", comparison.call.mechanism},
          {"bound", comparison.bound},
          {"unpredicted", comparison.unpredicted},
          {"predicted", predicted},
          {"measured", measured}};
}

std::string headline(const std::vector<Comparison>& comparisons) {
  const auto words = [&](std::string_view figure, std::string_view name, double within) {
    int calls = 0, near = 0;
    for (const Comparison& comparison : comparisons)
      for (const ComparedFigure& f : comparison.figures) {
        if (f.name != figure || !f.ratio()) continue;
        ++calls;
        near += std::abs(*f.ratio() - 1) <= within;
      }
    return calls == 0 ? std::string() : fmt::format("{} within {:.0f}% in {} of {}. ", name, 100 * within, near, calls);
  };
  const std::string text = words("dram_read_bytes", "DRAM reads", 0.02) + words("cycles", "Cycles", 0.1);
  return text.empty() ? "Counters without a prediction." : text;
}

}  // namespace

std::string html_measure(const std::vector<Comparison>& comparisons, std::string_view heading) {
  Json figures = Json::array(), calls = Json::array();
  if (!comparisons.empty())
    for (const ComparedFigure& figure : comparisons.front().figures)
      figures.push_back(
          {{"name", figure.name}, {"unit", figure.unit}, {"counter", figure.counter}, {"model", figure.model}});
  for (const Comparison& comparison : comparisons) calls.push_back(call_json(comparison));
  const std::string title =
      comparisons.size() == 1 ? page_words(comparisons[0].call.c) : fmt::format("{} calls", comparisons.size());
  return html_page({.title = fmt::format("attest measure: {}", title),
                    .heading = fmt::format("Predicted and counted: {}", title),
                    .place = std::string(heading),
                    .headline = headline(comparisons)},
                   "measure_sections", {"table", "measure"}, {{"figures", figures}, {"calls", calls}});
}

}  // namespace attest
