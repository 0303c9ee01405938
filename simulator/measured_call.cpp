#include "attest/simulator/measured_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "attest/plan/sm80_ablations.h"
#include "attest/problem/error.h"
#include "attest/problem/text.h"
#include "attest/simulator/tile_walk.h"
#include "attest/simulator/unfused.h"
#include "csv.h"
#include "refusals.h"

namespace attest {
namespace {

using Json = nlohmann::json;

constexpr std::string_view cycles = "sm__cycles_elapsed.max", nanoseconds = "gpu__time_duration.sum";
constexpr std::string_view must_be_printable = "must be UTF-8 without control characters";
constexpr std::string_view first_columns = "mechanism,kernel,case,launch,function";
constexpr std::size_t words = 5;  // of them

constexpr double most_counted = 1.8e19;  // by 64 bits, short of 2^64 - 1, which is an unsigned -1 and rounds to 2^64

/// What a counter holds, or a mean or a part of such.
std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value != 0 && !(value >= 1e-9 && value <= most_counted)) return std::nullopt;
  return value;
}

/// Counters that are a launch's own, as CUDA admits it up to compute capability 10.0: CUDA C++ Programming Guide,
/// "Technical Specifications per Compute Capability". Grids are products of three extents; shared memory is no more
/// than an SM's with L1. What units count has no such limits: with several passes even percentages exceed 100 (Nsight
/// Compute's guide, "Range and Precision").
struct OfLaunch {
  std::string_view counter;
  double least, most;
};
constexpr OfLaunch of_launch[] = {{"launch__block_size", 1, 1024},
                                  {"launch__grid_size", 1, 0x7fffffff * 65535.0 * 65535.0},
                                  {"launch__registers_per_thread", 1, 255},
                                  {"launch__shared_mem_per_block", 0, 256 << 10}};

/// Why a launch cannot have that counter; empty where it can. No value: it is no number.
std::string impossible(std::string_view counter, std::optional<double> value) {
  for (const OfLaunch& of : of_launch)
    if (of.counter == counter && !(value >= of.least && value <= of.most && *value == std::floor(*value)))
      return fmt::format("is no whole number from {:g} to {:g}", of.least, of.most);
  if (!value) return fmt::format("is neither 0 nor a number from 1e-9 to {:g}", most_counted);
  if (value == 0 && (counter == cycles || counter == nanoseconds)) return "is no time that a launch takes";
  return {};
}

std::optional<double> counter_of(const MeasuredLaunch& launch, std::string_view name) {
  const auto found = launch.counters.find(std::string(name));
  return found == launch.counters.end() ? std::nullopt : std::make_optional(found->second);
}

/// Why nobody can have measured a kernel of that name; empty where it is attest's or a plug-in's.
std::string unknown_kernel(std::string_view name) {
  if (name == "unfused" || !plan_of_kernel(name).empty()) return {};
  if (name.find('/') != std::string_view::npos || name.find(".so") != std::string_view::npos) return {};
  std::string names = "sm80";
  for (const NamedAblation& ablation : sm80_ablations) names += fmt::format(", {}", ablation.name);
  return fmt::format("is none of {}, unfused, nor a plug-in's path", names);
}

/// Of a header's columns, whether one is a counter that attest reads.
bool has_counter(const std::vector<std::string>& names) {
  const std::vector<std::string> known = ncu_counters();
  return std::any_of(names.begin() + words, names.end(), [&](const std::string& name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  });
}

/// A launch by what its line says, however it is written.
std::string content(const MeasuredCall& call, const MeasuredLaunch& launch, std::size_t number) {
  std::string text = fmt::format("{},{},{},{}", call.kernel, to_json(call.c).dump(), number, launch.function);
  for (const auto& [name, value] : launch.counters) text += fmt::format(",{}={}", name, value);
  return text;
}

/// How many launches make the call, of attest's own kernels; 0: as many as there are.
std::size_t launches_of(const MeasuredCall& call) {
  if (call.kernel == "unfused") return UnfusedCost::kernels;
  if (plan_of_kernel(call.kernel).empty()) return 0;
  return call.c.num_splits > 1 ? 2 : 1;  // forward and combine
}

}  // namespace

std::string_view plan_of_kernel(std::string_view kernel) {
  if (kernel == "sm80") return "attest";
  for (const NamedAblation& ablation : sm80_ablations)
    if (kernel == ablation.name) return ablation.name;
  return {};
}

// CUPTI's range profiler leaves more than Nsight Compute, the more the more launches it counts
// (docs/results/h200-l2.md, counted_chain).
std::int64_t MeasuredCall::dirty_bytes_before(std::optional<Profiler> via) const {
  if (via != Profiler::cupti) return TileWalkOptions{}.dirty_bytes_at_start;
  constexpr double of_one = 2.94, of_several = 2.45, each = 1.1;  // MiB
  const auto counted = static_cast<double>(launches.size());
  return static_cast<std::int64_t>((counted == 1 ? of_one : of_several + each * counted) * (1 << 20));
}

std::optional<double> MeasuredCall::sum(std::string_view counter) const {
  if (launches.empty()) return std::nullopt;
  double total = 0;
  for (const MeasuredLaunch& launch : launches) {
    const auto value = counter_of(launch, counter);
    if (!value) return std::nullopt;
    total += *value;
  }
  return total;
}

std::optional<double> MeasuredCall::of_longest(std::string_view counter) const {
  const MeasuredLaunch* longest = nullptr;
  double most = -1;
  for (const MeasuredLaunch& launch : launches)
    if (const double took = counter_of(launch, cycles).value_or(0); took > most) longest = &launch, most = took;
  return longest == nullptr ? std::nullopt : counter_of(*longest, counter);
}

std::string to_csv(const MeasuredFile& measured) {
  std::set<std::string> names;
  for (const MeasuredCall& call : measured.calls)
    for (const MeasuredLaunch& launch : call.launches)
      for (const auto& [name, value] : launch.counters) names.insert(name);
  std::string csv = to_comments(measured.how);
  for (const std::string& comment : measured.comments) csv += "# " + comment + "\n";
  csv += first_columns;
  for (const std::string& name : names) csv += "," + name;
  csv += "\n";
  for (const MeasuredCall& call : measured.calls)
    for (std::size_t i = 0; i < call.launches.size(); ++i) {
      const MeasuredLaunch& launch = call.launches[i];
      csv += fmt::format("{},{},{},{},{}", csv_cell(call.mechanism), csv_cell(call.kernel),
                         csv_cell(to_json(call.c).dump()), i, csv_cell(launch.function));
      for (const std::string& name : names) {
        const auto value = counter_of(launch, name);
        csv += value ? fmt::format(",{:.12g}", *value) : ",";
      }
      csv += "\n";
    }
  return csv;
}

MeasuredFile measured_from_csv(std::string_view text, std::string_view file) {
  MeasuredFile result;
  std::vector<std::string> names;
  std::size_t last = 0;                         // line of a launch
  std::vector<std::string> of_call;             // its call's cells
  std::map<std::string, std::size_t> launches;  // lines by what they say
  ProvenanceReader how(file);
  const auto refuse_unfinished = [&] {
    if (result.calls.empty()) return;
    const MeasuredCall& call = result.calls.back();
    if (const std::size_t wanted = launches_of(call), found = call.launches.size(); found < wanted)
      throw InvalidInput(file, fmt::format("line {}: launch '{}'", last, found - 1),
                         fmt::format("ends a call of {} that makes {} launches (num_splits = {}); launch {} is missing",
                                     call.kernel, wanted, call.c.num_splits, found));
  };
  each_line(text, [&](std::string_view line, std::size_t at) {
    const auto refuse = [&](std::string_view value, std::string_view why) {
      throw InvalidInput(file, fmt::format("line {}: '{}'", at, value), why);
    };
    if (line.data() + line.size() == text.data() + text.size())
      refuse(line.substr(0, 40), "has no newline behind it; the file is cut off");
    if (line.starts_with('#')) {
      if (!is_printable(line)) throw InvalidInput(file, fmt::format("line {}: a comment", at), must_be_printable);
      const std::string_view comment = line.substr(line.starts_with("# ") ? 2 : 1);
      if (!how.read(comment, at)) result.comments.emplace_back(comment);
      return;
    }
    if (line.empty()) return;
    const std::vector<std::string> cells = csv_cells(line);
    if (names.empty()) {
      if (line == first_columns) refuse(shortened(line, 40), "is a header without a counter's column");
      if (!line.starts_with(std::string(first_columns) + ","))
        refuse(shortened(line, 40), fmt::format("is no header, which begins with {}", first_columns));
      std::set<std::string_view> columns;
      for (const std::string& name : cells) {
        if (!is_printable(name)) throw InvalidInput(file, fmt::format("line {}: a column", at), must_be_printable);
        if (!columns.insert(name).second) refuse(name, "is a column already");
      }
      if (!has_counter(cells))
        refuse(cells[words], "is no counter that attest reads, nor is another column, as dram__bytes_read.sum is");
      names = cells;
      return;
    }
    if (cells.size() != names.size()) refuse(fmt::format("{} cells", cells.size()), fmt::format("of {}", names.size()));
    for (const std::size_t word : {0u, 1u, 4u})
      if (!is_printable(cells[word]))
        throw InvalidInput(file, fmt::format("line {}: {}", at, names[word]), must_be_printable);
    if (cells[0] == "all" || cells[0].empty()) refuse(cells[0], "stands for all mechanisms together, and for none");
    if (const std::string why = unknown_kernel(cells[1]); !why.empty()) refuse(cells[1], why);
    const auto launch = number(cells[3]);
    if (!launch) refuse(cells[3], "is no number of a launch");
    if (*launch == 0) {
      refuse_unfinished();
      MeasuredCall& call = result.calls.emplace_back();
      call.line = at;
      call.mechanism = cells[0], call.kernel = cells[1];
      try {
        call.c = case_from_json_text(cells[2]);
        check_own_kernel(call.kernel, call.c);
      } catch (const InvalidInput& error) {
        throw InvalidInput(file, fmt::format("line {}:", at), error.what());
      }
      of_call = cells;
    }
    if (result.calls.empty() || static_cast<double>(result.calls.back().launches.size()) != *launch)
      refuse(cells[3], "does not follow the launch before it");
    for (const std::size_t word : {0u, 1u, 2u})
      if (cells[word] != of_call[word])
        refuse(shortened(cells[word], 40), fmt::format("is another {} than that of launch 0 of its call", names[word]));
    if (const std::size_t all = launches_of(result.calls.back()); all != 0 && *launch >= static_cast<double>(all))
      refuse(cells[3], fmt::format("is one launch too many: a call of {} makes {} (num_splits = {})", cells[1], all,
                                   result.calls.back().c.num_splits));
    MeasuredLaunch& read = result.calls.back().launches.emplace_back();
    last = at;
    read.function = cells[4];
    for (std::size_t i = words; i < cells.size(); ++i) {
      if (cells[i].empty()) continue;
      const auto value = number(cells[i]);
      if (const std::string why = impossible(names[i], value); !why.empty())
        refuse(cells[i], fmt::format("{}, of {}", why, names[i]));
      read.counters[names[i]] = *value;
    }
    // with their cycles two launches are never counted alike to the last digit
    const bool timed = read.counters.contains(std::string(cycles));
    const std::string said = content(result.calls.back(), read, result.calls.back().launches.size() - 1);
    if (const auto [before, is_new] = launches.emplace(said, at); timed && !is_new)
      refuse(fmt::format("{}, {}, launch {}", cells[0], cells[1], cells[3]),
             fmt::format("is line {} once more, {} and all; remove one of them", before->second, cycles));
  });
  refuse_unfinished();
  result.how = how.result();
  return result;
}

std::vector<std::vector<MeasuredCall>> counts_by_call(const std::vector<MeasuredCall>& counts) {
  std::vector<std::vector<MeasuredCall>> calls;
  std::map<std::string, std::size_t> numbers;
  for (const MeasuredCall& count : counts) {
    Json functions = Json::array();
    for (const MeasuredLaunch& launch : count.launches) functions.push_back(launch.function);
    const std::string call = Json({count.mechanism, count.kernel, to_json(count.c), functions}).dump();
    const auto [at, is_new] = numbers.emplace(call, calls.size());
    if (is_new) calls.emplace_back();
    calls[at->second].push_back(count);
  }
  return calls;
}

MeasuredCall mean_of(std::span<const MeasuredCall> counts) {
  MeasuredCall mean = counts.front();
  for (std::size_t i = 0; i < mean.launches.size(); ++i) {
    auto& counters = mean.launches[i].counters;
    for (auto counter = counters.begin(); counter != counters.end();) {
      std::optional<double> sum = 0;
      for (const MeasuredCall& count : counts) {
        const auto value = counter_of(count.launches.at(i), counter->first);
        sum = sum && value ? std::make_optional(*sum + *value) : std::nullopt;
      }
      if (sum) counter->second = *sum / static_cast<double>(counts.size());
      counter = sum ? std::next(counter) : counters.erase(counter);
    }
  }
  return mean;
}

std::vector<MeasuredLaunch> launches_from_ncu(std::string_view log) {
  std::vector<std::string> names;
  std::vector<MeasuredLaunch> launches;
  const std::vector<std::string> wanted = ncu_counters();  // ncu adds what it knows of the device
  bool units = false;
  each_line(log, [&](std::string_view line, std::size_t) {
    if (!line.starts_with('"')) return;
    const std::vector<std::string> cells = csv_cells(line);
    if (names.empty()) return void(names = cells);
    if (!units) return void(units = true);
    MeasuredLaunch& launch = launches.emplace_back();
    for (std::size_t i = 0; i < cells.size() && i < names.size(); ++i) {
      if (names[i] == "Kernel Name") launch.function = cells[i];
      std::string plain;
      for (const char c : cells[i])
        if (c != ',') plain += c;  // 1,234,567
      const bool asked = std::find(wanted.begin(), wanted.end(), names[i]) != wanted.end();
      if (const auto value = number(plain); value && asked) launch.counters[names[i]] = *value;
    }
  });
  if (names.empty()) throw InvalidInput("ncu", "its log", "has no table of counters");
  return launches;
}

}  // namespace attest
