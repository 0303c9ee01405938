#include "case_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "attest/simulator/models.h"
#include "output.h"
#include "parse.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

struct IntegerFlag {
  const char* name;
  const char* help;
};
constexpr IntegerFlag integer_flags[] = {
    {"--batch", "Sequences (1)"},
    {"--nheads", "Query heads (1)"},
    {"--nheads-k", "Key and value heads; divides nheads (nheads)"},
    {"--seqlen-q", "Queries a sequence (128)"},
    {"--seqlen-k", "Keys a sequence (128)"},
    {"--headdim", "Width of a query and key head, 1 to 256 (64)"},
    {"--headdim-v", "Width of a value and output head (headdim)"},
};

// The flags whose fields a model gives.
const std::vector<std::string> fields_of_a_model = {"--nheads",   "--nheads-k",      "--seqlen-q",
                                                    "--seqlen-k", "--headdim",       "--headdim-v",
                                                    "--causal",   "--softmax-scale", "--window"};
const std::vector<std::string> other_fields = {"--batch", "--dtype", "--layout", "--base-offset", "--inputs", "--seed"};

std::vector<std::string> field_flags() {
  std::vector<std::string> all = fields_of_a_model;
  all.insert(all.end(), other_fields.begin(), other_fields.end());
  return all;
}

void refuse_beside(const Flags& flags, const std::vector<std::string>& names, std::string_view source) {
  for (const std::string& name : flags.given_of(names))
    throw InvalidInput(field_of(name), in_quotes(*flags.text(name)),
                       fmt::format("contradicts {}, which gives this field already", source));
}

// The fields of one layer of a model, which --batch and --dtype may still change.
Json model_fields(const Flags& flags, const std::string& model) {
  refuse_beside(flags, fields_of_a_model, "--model");
  const auto seqlen = flags.integer("--seqlen");
  if (!seqlen) throw InvalidInput("model", in_quotes(model), "needs --seqlen N, its tokens");
  refuse_unknown("model", model, model_names());
  Case c;
  c.problem = problem_of(load_model(model), *seqlen, flags.integer("--batch").value_or(1));
  return to_json(c);
}

Json case_argument(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\n\r");
  if (first == std::string::npos) throw InvalidInput("case", "''", "is neither a file nor a JSON object");
  const bool is_json = text[first] == '{';
  // A case has some twenty short fields; a file of a megabyte is not one.
  const Case c = case_from_json_text(is_json ? text : read_file("case", text, 1u << 20));
  return to_json(c);
}

}  // namespace

void declare_case_flags(Flags& flags) {
  flags.group("CASE: what attention is asked for");
  flags.value("--case", "FILE|JSON", "All of it, from a file or as '{...}'; alone");
  flags.value("--model", "NAME", "A layer of `attest models`, or of a .json file");
  flags.value("--seqlen", "N", "Tokens of the model: queries and keys");
  for (const IntegerFlag& flag : integer_flags) flags.value(flag.name, "N", flag.help);
  flags.value("--dtype", "T", "fp16, bf16 or fp32 (bf16)");
  flags.value("--softmax-scale", "X", "Factor of the scores, rounded to fp32 as kernels take it (1/sqrt(headdim))");
  flags.optional_value("--causal", "[ALIGN]", "Queries see no later key; bottom-right (no value) or top-left aligned");
  flags.value("--window", "L,R", "Keys before and after the diagonal that a query sees, inclusive; -1: unlimited");
  flags.group("CASE: where tensors lie and what they hold");
  flags.value("--layout", "SPEC", "bshd or bhsd[,row_gap=N][,seq_gap=N] (bshd)");
  flags.value("--base-offset", "N", "Elements by which the first value is off its alignment (0)");
  flags.value("--inputs", "DIST", "normal, large, shift, zero_q, one_v or one_hot_v (normal)");
  flags.value("--seed", "S", "Of the inputs (0)");
}

Json case_fields(const Flags& flags) {
  if (const auto text = flags.text("--case")) {
    refuse_beside(flags, field_flags(), "--case");
    refuse_beside(flags, {"--model", "--seqlen"}, "--case");
    return case_argument(*text);
  }
  const auto model = flags.text("--model");
  if (const auto seqlen = flags.text("--seqlen"); seqlen && !model)
    throw InvalidInput("seqlen", in_quotes(*seqlen), "goes with --model; otherwise give --seqlen-q and --seqlen-k");
  Json json = model ? model_fields(flags, *model) : Json::object();
  for (const IntegerFlag& flag : integer_flags)
    if (const auto value = flags.integer(flag.name)) json[field_of(flag.name)] = *value;
  if (const auto dtype = flags.text("--dtype")) json["dtype"] = *dtype;
  if (const auto scale = flags.number("--softmax-scale")) json["softmax_scale"] = *scale;
  if (const auto causal = flags.text("--causal")) json["causal"] = causal->empty() ? "bottom-right" : *causal;
  if (const auto window = flags.text("--window")) {
    const auto [left, right] = parse_pair("window", *window);
    json["window_left"] = left;
    json["window_right"] = right;
  }
  if (const auto layout = flags.text("--layout")) json["layout"] = *layout;
  if (const auto offset = flags.integer("--base-offset")) json["base_offset"] = *offset;
  if (const auto inputs = flags.text("--inputs")) json["inputs"] = *inputs;
  if (const auto seed = flags.unsigned_integer("--seed")) json["seed"] = *seed;
  return json;
}

Case read_case(const Flags& flags) { return case_from_json(case_fields(flags)); }

std::vector<std::string> case_flags_given(const Flags& flags) {
  std::vector<std::string> names = field_flags();
  names.insert(names.begin(), {"--case", "--model", "--seqlen"});
  return flags.given_of(names);
}

void refuse_unknown(std::string_view field, const std::string& word, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), word) != names.end()) return;
  if (word.find('/') != std::string::npos || word.ends_with(".json")) return;
  throw InvalidInput(field, in_quotes(word),
                     fmt::format("is none of {}{}", fmt::join(names, ", "), did_you_mean(word, names)));
}

}  // namespace attest::tools
