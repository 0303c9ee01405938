#include "html_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "attest/simulator/html_report.h"
#include "case_words.h"
#include "embedded.h"
#include "units.h"

namespace attest {
namespace {

std::string_view part(std::string_view name) { return text_of(embedded_report_page(), name); }

/// `page` with each {{name}} replaced by what stands beside it; replacements are not looked at again.
std::string filled(std::string_view page, const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string result;
  while (true) {
    const std::size_t open = page.find("{{"), close = page.find("}}", open);
    if (close == std::string_view::npos) return result += page;
    const std::string_view name = page.substr(open + 2, close - open - 2);
    const auto value = std::find_if(values.begin(), values.end(), [&](auto& v) { return v.first == name; });
    if (value == values.end()) throw std::logic_error(fmt::format("nothing fills {} in the page", name));
    (result += page.substr(0, open)) += value->second;
    page.remove_prefix(close + 2);
  }
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  return result;
}

std::string script_json(const nlohmann::ordered_json& json) {
  std::string result;
  // ASCII alone, so that U+2028 is escaped too; a '<' occurs only inside strings
  for (const char c : json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace))
    c == '<' ? result += "\\u003c" : result += c;
  return result;
}

std::string page_words(const Case& c) {
  std::string text = case_words(c);
  if (const std::size_t at = text.find(" x "); at != std::string::npos) text.replace(at, 3, " × ");
  return text;
}

std::string page_tiles(const KernelPlan& plan) {
  return fmt::format("{} × {} tiles, {} warps, {} stage{}", plan.tile_m, plan.tile_n, plan.warps(), plan.stages,
                     plan.stages == 1 ? "" : "s");
}

std::string page_time(double us) {
  std::string text = units::time(us);
  if (text.ends_with("us")) text.replace(text.size() - 2, 1, "µ");
  return text.replace(text.find(' '), 1, "\u00a0");  // a line does not end between figure and unit
}

std::string page_times(double factor) {
  return fmt::format("{:.{}f}\u00a0×", factor, factor >= 100 ? 0 : factor < 2 ? 2 : 1);
}

std::string_view page_bound(std::string_view bound) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"tensor", "the tensor cores"}, {"exp", "exponentials"},
      {"FMA", "sums and products"},   {"ALU", "maxima, masks and packing"},
      {"issue", "instruction issue"}, {"latency", "latency: no resource comes near its peak"}};
  for (const auto& [name, text] : words)
    if (bound == name) return text;
  return bound;
}

std::string html_page(const PageText& text, std::string_view sections, std::initializer_list<std::string_view> scripts,
                      const nlohmann::ordered_json& data) {
  std::string draw;
  const auto add = [&](std::string_view name) { (draw += part(name)) += '\n'; };
  for (const std::string_view name : {"format", "formulas", "chart"}) add(name);
  for (const std::string_view name : scripts) add(name);
  add("show");
  return filled(part("page"), {{"title", html_escaped(text.title)},
                               {"heading", html_escaped(text.heading)},
                               {"place", html_escaped(text.place)},
                               {"headline", html_escaped(text.headline)},
                               {"style", std::string(part("style"))},
                               {"sections", std::string(part(sections))},
                               {"data", script_json(data)},
                               {"library_license", std::string(part("d3_license"))},
                               {"library", std::string(part("d3.min"))},
                               {"draw", draw}});
}

}  // namespace attest
