// The page. Text and SVG alone, so that it reads the same in a browser, a mail and a CI system's preview.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "attest/fuzz/xml.h"
#include "attest/nightly/rank_test.h"
#include "attest/nightly/regression.h"
#include "attest/nightly/report.h"
#include "attest/problem/embedded_file.h"

namespace attest {

std::span<const EmbeddedFile> embedded_nightly_style();  // made by attest_embed()

namespace {

std::string day(const std::string& when) { return when.substr(0, when.find('T')); }
// "2026-01-31 23:59", for people; UTC.
std::string minute(const std::string& when) {
  std::string text = when.substr(0, when.find_last_of(':'));
  std::replace(text.begin(), text.end(), 'T', ' ');
  return text;
}
std::string plural(std::size_t n, std::string_view what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

std::string state_words(CheckState state) {
  switch (state) {
    case CheckState::crashed:
      return "crashed or hung";
    case CheckState::wrong:
      return "wrong";
    case CheckState::regressed:
      return "worse than before";
    default:
      return std::string(to_string(state));
  }
}

// "fuzz/sm80" of "fuzz/sm80/gqa": what is red together is told together.
std::string group_of(const std::string& check) {
  const std::size_t slash = check.find('/'), next = check.find('/', slash + 1);
  return slash == std::string::npos ? check : check.substr(0, next);
}

using RedCheck = std::pair<Check, RedSince>;

// In the order of the first of each; `reference`, which says most plainly what is wrong, leads its own.
std::vector<std::pair<std::string, std::vector<const RedCheck*>>> red_groups(const NightReport& report) {
  std::vector<std::pair<std::string, std::vector<const RedCheck*>>> groups;
  for (const RedCheck& red : report.red) {
    const std::string name = group_of(red.first.name);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == name; });
    if (group == groups.end()) group = groups.insert(group, {name, {}});
    const bool leads = red.first.name.ends_with("/reference") && !group->second.empty() &&
                       group->second.front()->first.state == red.first.state;
    group->second.insert(leads ? group->second.begin() : group->second.end(), &red);
  }
  return groups;
}

std::string_view class_of(NightVerdict verdict) {
  if (verdict == NightVerdict::red) return "red";
  return verdict == NightVerdict::green ? "green" : "nothing";
}

std::string title_prefix(const NightReport& report) {
  switch (report.verdict()) {
    case NightVerdict::red:
      return fmt::format("{} red: ", report.red.size());
    case NightVerdict::interrupted:
      return "not over: ";
    case NightVerdict::nothing_checked:
      return "nothing checked: ";
    case NightVerdict::green:
      break;
  }
  return "";
}

std::string headline(const NightReport& report) {
  const NightVerdict verdict = report.verdict();
  const std::string count = plural(report.night.checks.size(), "check");
  std::string text;
  switch (verdict) {
    case NightVerdict::red:
      text = fmt::format("{} red", plural(report.red.size(), "check"));
      break;
    case NightVerdict::interrupted:
      text = fmt::format("None of {} so far is red", count);
      break;
    case NightVerdict::nothing_checked:
      text = fmt::format("No kernel was checked: {}", count);
      break;
    case NightVerdict::green:
      text = fmt::format("Nothing is red: {}", count);
      break;
  }
  if (report.night.finished.empty()) text += "; the night is not over";
  std::string groups;
  for (const auto& [name, checks] : red_groups(report))
    groups += fmt::format("{}{}: {}", groups.empty() ? "" : ", ", xml_escaped(name), checks.size());
  return fmt::format("<p class=\"verdict {}\">{}{}</p>\n", class_of(verdict), text,
                     groups.empty() ? "" : "<small>" + groups + "</small>");
}

// Words that a line does not end inside of.
std::string to_paste(const std::string& line) {
  std::string text;
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    text += fmt::format("{}<span>{}</span>", begin == 0 ? "" : " ", xml_escaped(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return "<pre>" + text + "</pre>";
}

std::string red_words(const RedCheck& red) {
  const auto& [check, since] = red;
  return fmt::format(
      "    <p class=\"what\"><b>{} {}</b> since <time>{}</time>, {}{}</p>\n    <p class=\"detail\">{}</p>\n{}",
      xml_escaped(check.name), state_words(check.state), minute(since.first),
      plural(static_cast<std::size_t>(since.nights), "night"),
      since.last_good.empty() ? "; never seen good" : "; last good " + minute(since.last_good),
      xml_escaped(check.detail), check.repro.empty() ? "" : "    " + to_paste(check.repro) + "\n");
}

std::string red_cards(const NightReport& report) {
  std::string text;
  for (const auto& [name, checks] : red_groups(report)) {
    text +=
        fmt::format("  <article class=\"{}\">\n{}", to_string(checks.front()->first.state), red_words(*checks.front()));
    std::string more;
    for (std::size_t i = 1; i < checks.size(); ++i) more += red_words(*checks[i]);
    if (!more.empty())
      text += fmt::format("    <details>\n    <summary>{} more of {}</summary>\n{}    </details>\n", checks.size() - 1,
                          xml_escaped(name), more);
    text += "  </article>\n";
  }
  return text.empty() ? "" : "<div id=\"red\">\n" + text + "</div>\n";
}

// Of a night in the strip: its class, its words and what stands in its box.
struct PastWords {
  const char* style;
  std::string words, box;
};

PastWords words_of(const PastNight& night) {
  if (night.red > 0) return {"red", fmt::format("{} red", night.red), fmt::format("{}", night.red)};
  if (!night.finished) return {"open", "not finished", "..."};
  if (night.exit_code == exit_unsupported) return {"open", "nothing checked", "none"};
  return {"green", "green", "ok"};
}

std::string past_strip(const NightReport& report) {
  std::string text = "<section id=\"nights\" class=\"wide\">\n  <h2>Nights</h2>\n  <ol class=\"strip\">\n";
  for (const PastNight& night : report.past) {
    const PastWords words = words_of(night);
    text += fmt::format("    <li class=\"{}\" title=\"{}: {}\"><b>{}</b><span>{}</span></li>\n", words.style,
                        minute(night.started), words.words, words.box, day(night.started).substr(5));
  }
  return text + "  </ol>\n</section>\n";
}

// A point a night, its median; tonight's last. Red ones are larger, so that they show in grey too.
std::string sparkline(const FigureHistory& figure) {
  std::vector<std::pair<double, bool>> points;
  for (const Figures& night : figure.before) points.emplace_back(median(night.values), night.red);
  points.emplace_back(median(figure.series.values), false);
  if (points.size() < 2) return "";
  const auto [least, most] = std::minmax_element(points.begin(), points.end());
  const double low = least->first, range = std::max(most->first - low, 0.05 * most->first);
  constexpr double width = 120, height = 24, margin = 4;
  std::string line, dots;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double x = margin + (width - 2 * margin) * static_cast<double>(i) / static_cast<double>(points.size() - 1);
    const double y = height - margin - (height - 2 * margin) * (range > 0 ? (points[i].first - low) / range : 0);
    line += fmt::format("{}{:.1f},{:.1f}", i == 0 ? "" : " ", x, y);
    if (points[i].second || i + 1 == points.size())
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"{}/>", x, y, points[i].second ? 3.5 : 2.5,
                          points[i].second ? " class=\"red\"" : "");
  }
  return fmt::format(
      "<svg class=\"spark\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" aria-label=\"from {2} to "
      "{3}\"><polyline points=\"{4}\"/>{5}</svg>",
      width, height, figure_words(points.front().first, figure.series.unit),
      figure_words(points.back().first, figure.series.unit), line, dots);
}

std::string figures_table(const NightReport& report) {
  std::string text =
      "<section id=\"figures\" class=\"wide\">\n  <h2>Times and bytes</h2>\n  <p class=\"say\">Medians; the line is "
      "the "
      "nights before on the same device, driver and toolkit.</p>\n  <table>\n    <thead><tr><th>figure</th><th "
      "class=\"number\">tonight</th><th>beside before</th><th>nights</th></tr></thead>\n    <tbody>\n";
  for (const FigureHistory& figure : report.figures) {
    const auto check = std::find_if(report.night.checks.begin(), report.night.checks.end(),
                                    [&](const Check& c) { return c.name == figure.series.name; });
    const bool known = check != report.night.checks.end();
    text += fmt::format("    <tr{}><td>{}</td><td class=\"number\">{}</td><td>{}</td><td>{}</td></tr>\n",
                        known && is_red(check->state) ? " class=\"red\"" : "", xml_escaped(figure.series.name),
                        figure_words(median(figure.series.values), figure.series.unit),
                        known ? xml_escaped(check->detail) : "", sparkline(figure));
  }
  return report.figures.empty() ? "" : text + "    </tbody>\n  </table>\n</section>\n";
}

std::string coverage_table(const NightReport& report) {
  std::string text = fmt::format(
      "<section id=\"fuzz\">\n  <h2>Fuzzed</h2>\n  <p class=\"say\">Seed {}, shard {}/{}, generator version {}.</p>\n"
      "  <table>\n    <thead><tr><th>kernel</th><th class=\"number\">cases</th><th class=\"number\">failed</th><th "
      "class=\"number\">unsupported</th><th class=\"number\">every case below</th></tr></thead>\n    <tbody>\n",
      report.night.campaign.seed, report.night.campaign.shard_index, report.night.campaign.shard_count,
      report.night.campaign.generator_version);
  for (const KernelCoverage& c : report.coverage)
    text += fmt::format(
        "    <tr{}><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td "
        "class=\"number\">{}</td></tr>\n",
        c.statuses.failed() > 0 ? " class=\"red\"" : "", xml_escaped(c.kernel), c.cases(), c.statuses.failed(),
        c.statuses[Status::unsupported], c.first_uncovered_k);
  return report.coverage.empty() ? "" : text + "    </tbody>\n  </table>\n</section>\n";
}

std::string steps_table(const NightReport& report) {
  std::string text =
      "<section id=\"steps\">\n  <h2>What ran</h2>\n  <table>\n    <thead><tr><th>step</th><th "
      "class=\"number\">seconds</th><th>what it did, or why it did not</th></tr></thead>\n    <tbody>\n";
  for (const Step& step : report.night.steps)
    text += fmt::format("    <tr><td>{}</td><td class=\"number\">{:.1f}</td><td>{}</td></tr>\n", xml_escaped(step.name),
                        step.seconds, xml_escaped(step.note));
  return text + "    </tbody>\n  </table>\n</section>\n";
}

std::string checks_list(const NightReport& report) {
  std::string text;
  std::size_t skipped = 0;
  for (const Check& check : report.night.checks) {
    skipped += check.state == CheckState::skipped;
    text += fmt::format("    <tr class=\"{0}\"><td>{1}</td><td>{0}</td><td>{2}</td></tr>\n",
                        is_red(check.state) ? "red" : to_string(check.state), xml_escaped(check.name),
                        xml_escaped(check.detail));
  }
  return fmt::format(
      "<section id=\"checks\" class=\"wide\">\n  <details>\n    <summary>All {}, {} of them not run</summary>\n  "
      "<table>\n    <tbody>\n{}    </tbody>\n  </table>\n  </details>\n</section>\n",
      plural(report.night.checks.size(), "check"), skipped, text);
}

}  // namespace

std::string to_html(const NightReport& report) {
  const Night& night = report.night;
  std::string style;
  for (const std::string_view part : {"style", "night"})  // the later one wins
    for (const EmbeddedFile& file : embedded_nightly_style())
      if (file.name == part) style += file.text;
  const std::string place = xml_escaped(
      fmt::format("{}, {}{}, {}; {}{}", night.machine.host, night.machine.device,
                  night.machine.driver.empty() ? "" : ", driver " + night.machine.driver, night.machine.toolkit,
                  minute(night.started), night.finished.empty() ? "" : " to " + minute(night.finished) + " UTC"));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>{}attest nightly, {}</title>\n<style>\n{}</style>\n</head>\n<body>\n<header>\n  <h1>attest nightly, "
      "{}</h1>\n"
      "  <p class=\"place\">{}</p>\n{}</header>\n{}<main>\n{}{}{}{}{}</main>\n<footer>attest {}; made of "
      "history.sqlite by "
      "attest report.</footer>\n</body>\n</html>\n",
      title_prefix(report), day(night.started), style, day(night.started), place, headline(report), red_cards(report),
      past_strip(report), figures_table(report), coverage_table(report), steps_table(report), checks_list(report),
      xml_escaped(night.version));
}

}  // namespace attest
