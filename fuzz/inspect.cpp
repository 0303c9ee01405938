#include "attest/fuzz/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attest/fuzz/campaign.h"
#include "attest/problem/error.h"
#include "attest/problem/text.h"
#include "single_session.h"

namespace attest {
namespace {

using Result = InspectionStep::Result;

constexpr double question_seconds = 60;  // a record or a plan

struct Sample {
  const char* name;
  const char* fields;  // of a case; the dtype is the kernel's first
};

// One thing at a time, small enough that all of it takes seconds.
constexpr Sample samples[] = {
    {"plain", R"({"seqlen_q": 64, "seqlen_k": 64})"},
    {"one token", R"({"seqlen_q": 1, "seqlen_k": 77})"},
    {"ragged lengths", R"({"batch": 2, "nheads": 2, "seqlen_q": 37, "seqlen_k": 131, "headdim": 40, "headdim_v": 40})"},
    {"no keys", R"({"seqlen_q": 5, "seqlen_k": 0})"},
    {"strides and gaps",
     R"({"batch": 2, "nheads": 2, "seqlen_q": 9, "seqlen_k": 33, "layout": "bhsd,row_gap=8,seq_gap=2"})"},
    {"base offset", R"({"seqlen_q": 9, "seqlen_k": 33, "base_offset": 1})"},
    {"negative scale", R"({"seqlen_q": 9, "seqlen_k": 33, "softmax_scale": -0.5})"},
    {"large scores", R"({"seqlen_q": 9, "seqlen_k": 133, "inputs": "large"})"},
    {"causal, bottom-right", R"({"seqlen_q": 40, "seqlen_k": 90, "causal": "bottom-right"})"},
    {"causal, top-left", R"({"seqlen_q": 40, "seqlen_k": 90, "causal": "top-left"})"},
    {"grouped heads", R"({"nheads": 6, "nheads_k": 2, "seqlen_q": 9, "seqlen_k": 33})"},
    {"headdim_v", R"({"seqlen_q": 9, "seqlen_k": 33, "headdim": 64, "headdim_v": 32})"},
    {"window", R"({"seqlen_q": 40, "seqlen_k": 40, "window_left": 7, "window_right": 3})"},
    {"softcap", R"({"seqlen_q": 9, "seqlen_k": 33, "softcap": 5})"},
    {"alibi", R"({"nheads": 2, "seqlen_q": 9, "seqlen_k": 33, "alibi": true})"},
    {"sink", R"({"nheads": 2, "seqlen_q": 9, "seqlen_k": 33, "sink": true})"},
    {"bias", R"({"seqlen_q": 9, "seqlen_k": 33, "bias": "bhqk"})"},
    {"varlen", R"({"varlen_q": [3, 17, 0], "varlen_k": [5, 40, 9]})"},
    {"pages", R"({"batch": 2, "seqlen_q": 3, "seqlen_k": 50, "page_size": 16})"},
    {"splits", R"({"seqlen_q": 1, "seqlen_k": 300, "num_splits": 3})"},
    {"gradients", R"({"seqlen_q": 20, "seqlen_k": 33, "backward": true})"},
};

constexpr std::pair<const char*, bool Capability::*> flags[] = {
    {"offers_lse", &Capability::offers_lse},          {"offers_gradients", &Capability::offers_gradients},
    {"bitwise_batch", &Capability::bitwise_batch},    {"bitwise_gqa", &Capability::bitwise_gqa},
    {"bitwise_layout", &Capability::bitwise_layout},  {"bitwise_repeat", &Capability::bitwise_repeat},
    {"isolates_values", &Capability::isolates_values}};

// What to_json() wrote.
Capability to_capability(const wire::Json& json) {
  Capability c;
  c.name = json.at("name").get<std::string>();
  c.description = json.at("description").get<std::string>();
  c.device = json.at("device").get<std::string>();
  for (const wire::Json& dtype : json.at("dtypes"))
    c.dtypes.push_back(dtype_from_string(dtype.get_ref<const std::string&>()));
  c.features = json.at("features").get<std::vector<std::string>>();
  for (const auto& [name, flag] : flags) c.*flag = json.at(name).get<bool>();
  c.lse_base = json.at("lse_base").get<double>();
  const wire::Json& empty = json.at("lse_of_empty_row");
  c.lse_of_empty_row = empty.is_string() ? std::stod(empty.get<std::string>()) : empty.get<double>();
  return c;
}

Capability ask_capability(WorkerSession& session) {
  return to_capability(ask(session, {{"describe", true}}, {.kernel_seconds = question_seconds}).at("capability"));
}

// Every property of one sample.
InspectionStep put_to(WorkerSession& session, const Sample& sample, const CheckOptions& options) {
  InspectionStep step{sample.name, Result::right, ""};
  const CheckResult result = run_check(session, options);
  if (result.unsupported) return {sample.name, Result::refused, *result.unsupported};
  for (const auto& [property, verdict] : result.verdicts) {
    if (verdict.status == Status::passed) continue;
    const bool crash = verdict.status == Status::crashed || verdict.status == Status::hung;
    if (step.result == Result::right || (crash && step.result != Result::crashed)) {
      step.result = crash ? Result::crashed : Result::wrong;
      step.detail = fmt::format("{}: {}; {}", property, describe(verdict),
                                repro_line(options.kernel, property, options.the_case));
    }
  }
  if (step.result == Result::right) step.detail = fmt::format("{} properties hold", result.verdicts.size());
  return step;
}

std::string words(const Capability& c) {
  std::vector<std::string_view> dtypes;
  for (const Dtype dtype : c.dtypes) dtypes.push_back(to_string(dtype));
  return fmt::format("{} on {}: {}; O{}{}; {}", c.name, c.device, fmt::join(dtypes, ", "), c.offers_lse ? ", LSE" : "",
                     c.offers_gradients ? ", gradients" : "",
                     c.features.empty() ? "plain attention only" : fmt::format("{}", fmt::join(c.features, ", ")));
}

// JSON has no infinities.
nlohmann::ordered_json number_or_word(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(fmt::format("{}", value));
}

const char* word_of(Result result) {
  switch (result) {
    case Result::right:
      return "right";
    case Result::wrong:
      return "WRONG";
    case Result::crashed:
      return "CRASHED";
    case Result::refused:
      return "refused";
  }
  return "?";
}

ExitCode exit_code_of(const std::vector<InspectionStep>& cases) {
  const auto any = [&](Result result) {
    return std::any_of(cases.begin(), cases.end(), [&](const InspectionStep& step) { return step.result == result; });
  };
  if (any(Result::crashed)) return exit_kernel_crashed;
  if (any(Result::wrong)) return exit_kernel_wrong;
  return any(Result::right) ? exit_pass : exit_unsupported;
}

}  // namespace

Capability inspect_capability(const WorkerProgram& program, const std::string& kernel) {
  WorkerSession session = single_session(program, kernel);
  return ask_capability(session);
}

std::string inspect_plan(const WorkerProgram& program, const std::string& kernel, const Case& c) {
  WorkerSession session = single_session(program, kernel);
  const wire::Json answer = ask(session, {{"plan", wire::from_case(c)}}, {.kernel_seconds = question_seconds});
  if (answer.contains("unsupported"))
    throw InvalidInput("kernel", kernel,
                       fmt::format("refuses the case: {}", answer.at("unsupported").get<std::string>()));
  if (!answer.contains("plan")) throw InvalidInput("kernel", kernel, "tells no plan; take --plan");
  return answer.at("plan").get<std::string>();
}

Inspection inspect_kernel(const WorkerProgram& program, const std::string& kernel, double hang_seconds) {
  Inspection inspection{kernel, std::nullopt, {}, exit_pass};
  WorkerSession session = single_session(program, kernel);
  const auto fail = [&](ExitCode code, Result result, const char* what) {
    inspection.exit_code = code;
    inspection.steps.push_back({"load", result, what});
    return inspection;
  };
  try {
    inspection.capability = ask_capability(session);
  } catch (const InvalidInput& error) {
    return fail(exit_usage, Result::wrong, error.what());
  } catch (const KernelCrashed& error) {
    return fail(exit_kernel_crashed, Result::crashed, error.what());
  } catch (const EnvironmentError& error) {
    return fail(exit_environment, Result::wrong, error.what());
  }
  std::vector<InspectionStep> cases;
  for (const Sample& sample : samples) {
    CheckOptions options;
    options.kernel = kernel;
    options.hang_seconds = hang_seconds;
    auto fields = nlohmann::ordered_json::parse(sample.fields);
    fields["dtype"] = to_string(inspection.capability->dtypes.front());
    options.the_case = case_from_json(fields);
    cases.push_back(put_to(session, sample, options));
  }
  inspection.exit_code = exit_code_of(cases);
  inspection.steps = {{"load", Result::right, "loaded in a process of its own"},
                      {"record", Result::right, words(*inspection.capability)}};
  inspection.steps.insert(inspection.steps.end(), cases.begin(), cases.end());
  return inspection;
}

nlohmann::ordered_json to_json(const Capability& c) {
  nlohmann::ordered_json json = {{"name", c.name}, {"description", c.description}, {"device", c.device}};
  for (const Dtype dtype : c.dtypes) json["dtypes"].push_back(to_string(dtype));
  json["features"] = c.features;
  for (const auto& [name, flag] : flags) json[name] = c.*flag;
  json["lse_base"] = c.lse_base;
  json["lse_of_empty_row"] = number_or_word(c.lse_of_empty_row);
  return json;
}

nlohmann::ordered_json to_json(const Inspection& inspection) {
  nlohmann::ordered_json json = {{"kernel", inspection.kernel}};
  if (inspection.capability) json["capability"] = to_json(*inspection.capability);
  json["steps"] = nlohmann::ordered_json::array();
  for (const auto& [name, result, detail] : inspection.steps) {
    std::string word = word_of(result);
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
    json["steps"].push_back({{"name", name}, {"result", word}, {"detail", detail}});
  }
  json["exit_code"] = static_cast<int>(inspection.exit_code);
  return json;
}

std::string to_text(const Inspection& inspection) {
  std::string text = fmt::format("kernel {}\n", escaped(shortened(inspection.kernel, 200)));
  for (const auto& [name, result, detail] : inspection.steps)
    text += fmt::format("  {:<22} {:<8} {}\n", name, word_of(result), escaped(detail));
  return text;
}

}  // namespace attest
