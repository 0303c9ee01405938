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
  Json predicted = Json::array(), measured = Json::array(), errors = Json::array(), deviations = Json::array();
  for (const ComparedFigure& figure : comparison.figures) {
    predicted.push_back(value(figure.predicted));
    measured.push_back(value(figure.measured));
    errors.push_back(value(figure.error()));
    deviations.push_back(value(figure.deviation));
  }
  return {{"words", fmt::format("{}, {}", comparison.call.kernel, page_words(comparison.call.c))},
          {"mechanism", comparison.call.mechanism},
          {"bound", comparison.bound},
          {"unpredicted", comparison.unpredicted},
          {"predicted", predicted},
          {"measured", measured},
          {"errors", errors},
          {"counts", comparison.counts},
          {"deviations", deviations}};
}

std::string headline_of_call(const Comparison& comparison) {
  const auto words = [&](std::string_view figure, std::string_view name) {
    for (const ComparedFigure& f : comparison.figures) {
      if (f.name != figure || !f.ratio()) continue;
      const double off = 100 * (*f.ratio() - 1);
      return std::abs(off) < 0.05
                 ? fmt::format("{} as predicted. ", name)
                 : fmt::format("{} predicted {:.1f}% too {}. ", name, std::abs(off), off > 0 ? "high" : "low");
    }
    return std::string();
  };
  return words("dram_read_bytes", "DRAM reads") + words("sm_read_bytes", "SM reads") + words("cycles", "Cycles");
}

std::string headline_of_calls(const std::vector<Comparison>& comparisons) {
  const auto words = [&](std::string_view figure, std::string_view name, double within) {
    int calls = 0, near = 0;
    for (const Comparison& comparison : comparisons)
      for (const ComparedFigure& f : comparison.figures) {
        if (f.name != figure || !f.error()) continue;
        ++calls;
        near += *f.error() <= within;
      }
    return calls == 0 ? std::string() : fmt::format("{} within {:.0f}% in {} of {}. ", name, 100 * within, near, calls);
  };
  return words("dram_read_bytes", "DRAM reads", 0.02) + words("cycles", "Cycles", 0.1);
}

}  // namespace

std::string html_measure(const std::vector<Comparison>& comparisons, std::string_view heading) {
  Json figures = Json::array(), calls = Json::array();
  if (!comparisons.empty())
    for (const ComparedFigure& figure : comparisons.front().figures)
      figures.push_back(
          {{"name", figure.name}, {"unit", figure.unit}, {"counter", figure.counter}, {"model", figure.model}});
  for (const Comparison& comparison : comparisons) calls.push_back(call_json(comparison));
  const bool one = comparisons.size() == 1;
  const std::string title = one ? page_words(comparisons[0].call.c) : fmt::format("{} calls", comparisons.size()),
                    headline = one ? headline_of_call(comparisons[0]) : headline_of_calls(comparisons);
  const PageText text{.title = fmt::format("attest measure: {}", title),
                      .heading = fmt::format("Predicted and counted: {}", title),
                      .place = std::string(heading),
                      .headline = headline.empty() ? "Counters without a prediction." : headline};
  const Json data{{"figures", figures}, {"calls", calls}};
  return one ? html_page(text, "measure_call_sections", {"table", "measured", "measure_call"}, data)
             : html_page(text, "measure_sections", {"table", "measured", "measure"}, data);
}

}  // namespace attest
