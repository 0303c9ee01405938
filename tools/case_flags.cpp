#include "case_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "attest/problem/problem_limits.h"
#include "attest/problem/text.h"
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
    {"--seqlen-k", "Keys a sequence (seqlen_q)"},
    {"--headdim", "Width of a query and key head, 1 to 256 (64)"},
    {"--headdim-v", "Width of a value and output head (headdim)"},
};

// The flags whose fields a model gives.
const std::vector<std::string> fields_of_a_model = {"--nheads",   "--nheads-k",      "--seqlen-q",
                                                    "--seqlen-k", "--headdim",       "--headdim-v",
                                                    "--causal",   "--softmax-scale", "--window"};
const std::vector<std::string> toggle_flags = {"--alibi", "--sink", "--backward", "--deterministic"};
const std::vector<std::string> list_flags = {"--documents", "--varlen-q", "--varlen-k", "--seqused-k"};
const std::vector<std::string> other_fields = {
    "--batch",     "--dtype",      "--prefix",      "--softcap",    "--bias",   "--layout", "--page-size",
    "--num-pages", "--page-table", "--base-offset", "--num-splits", "--inputs", "--seed"};

std::vector<std::string> field_flags() {
  std::vector<std::string> all = fields_of_a_model;
  for (const auto& more : {other_fields, list_flags, toggle_flags}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

void refuse_beside(const Flags& flags, const std::vector<std::string>& names, std::string_view source) {
  for (const std::string& name : flags.given_of(names))
    throw InvalidInput(field_of(name), in_quotes(*flags.text(name)),
                       fmt::format("contradicts {}, which gives this field already", source));
}

std::optional<std::int64_t> integer(const Flags& flags, const std::string& name) {
  for (const FieldLimits& limits : problem_limits)
    if (limits.field == field_of(name)) return flags.integer(name, limits.low, limits.high);
  return flags.integer(name);
}

// The fields of one layer of a model, which --batch and --dtype may still change.
Json model_fields(const Flags& flags, const std::string& model, std::optional<std::int64_t> seqlen_of_model) {
  refuse_beside(flags, fields_of_a_model, "--model");
  const auto given = flags.integer("--seqlen", 0, longest_sequence);
  const auto seqlen = given ? given : seqlen_of_model;
  if (!seqlen) throw InvalidInput("model", in_quotes(model), "needs --seqlen N, its tokens");
  refuse_unknown("model", model, model_names());
  Case c;
  c.problem = problem_of(load_model(model), *seqlen, integer(flags, "--batch").value_or(1));
  return to_json(c);
}

// "3,1/0/": a row for each batch entry.
Json parse_page_table(std::string_view text) {
  Json table = Json::array();
  for (std::string_view rest = text;; rest = rest.substr(rest.find('/') + 1)) {
    const std::string_view row = rest.substr(0, rest.find('/'));
    const std::string field = fmt::format("page_table[{}]", table.size());
    table.push_back(row.empty() ? Json::array() : Json(parse_integers(field, row)));
    if (row.size() == rest.size()) return table;
  }
}

Json case_argument(const std::string& text) {
  const std::string_view inner = trimmed(text);
  if (inner.empty()) throw InvalidInput("case", "''", "is neither a file nor a JSON object");
  const bool is_json = inner.front() == '{';
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
  flags.value("--dtype", "T", "fp16, bf16, fp32, fp8_e4m3 or fp8_e5m2 (bf16)");
  flags.value("--softmax-scale", "X", "Factor of the scores, rounded to fp32 as kernels take it (1/sqrt(headdim))");
  flags.optional_value("--causal", "[ALIGN]", "Queries see no later key; bottom-right (no value) or top-left aligned");
  flags.value("--window", "L,R", "Keys before and after the diagonal that a query sees, inclusive; -1: unlimited");
  flags.value("--prefix", "N", "Keys that every query sees, whatever causal and window say (0)");
  flags.value("--documents", "A,B,C", "Lengths of documents; a query sees keys of its own only");
  flags.value("--softcap", "C", "Scores become C tanh(score / C); 0: they stay (0)");
  flags.toggle("--alibi", "Scores lose slope times the distance from the diagonal");
  flags.toggle("--sink", "A score for each head joins the denominator");
  flags.optional_value("--bias", "[SHAPE]", "A dense bias joins the scores: bhqk (no value), 1hqk, b1qk or 11qk");
  flags.value("--varlen-q", "A,B,C", "Queries of each batch entry, packed one after the other");
  flags.value("--varlen-k", "A,B,C", "Keys of each batch entry, likewise");
  flags.value("--seqused-k", "A,B,C", "Of each batch entry's keys, how many exist");
  flags.toggle("--backward", "The gradients are asked for as well");
  flags.toggle("--deterministic", "The gradients must be the same bits in every run");
  flags.value("--num-splits", "N",
              "Shares that a row's keys are split into and combined from, 1 to 256 (1); predict --auto-splits says how "
              "many suit");
  flags.group("CASE: where tensors lie and what they hold");
  flags.value("--layout", "SPEC", "bshd or bhsd[,row_gap=N][,seq_gap=N] (bshd)");
  flags.value("--page-size", "N", "Keys and values lie in pages of N keys; 0: they do not (0)");
  flags.value("--num-pages", "N", "Pages there are (as needed, and some that nobody uses)");
  flags.value("--page-table", "A,B/C", "The pages of each batch entry, entries parted by '/' (shuffled by --seed)");
  flags.value("--base-offset", "N", "Elements by which the first value is off its alignment (0)");
  flags.value("--inputs", "DIST",
              "normal, large, shift, zero_q, one_v, one_hot_v, non_finite or orthogonal_dout (normal)");
  flags.value("--seed", "S", "Of the inputs (0)");
}

Json case_fields(const Flags& flags, std::optional<std::int64_t> seqlen_of_model) {
  if (const auto text = flags.text("--case")) {
    refuse_beside(flags, field_flags(), "--case");
    refuse_beside(flags, {"--model", "--seqlen"}, "--case");
    return case_argument(*text);
  }
  const auto model = flags.text("--model");
  if (const auto seqlen = flags.text("--seqlen"); seqlen && !model)
    throw InvalidInput("seqlen", in_quotes(*seqlen), "goes with --model; otherwise give --seqlen-q and --seqlen-k");
  Json json = model ? model_fields(flags, *model, seqlen_of_model) : Json::object();
  for (const IntegerFlag& flag : integer_flags)
    if (const auto value = integer(flags, flag.name)) json[field_of(flag.name)] = *value;
  if (const auto dtype = flags.text("--dtype")) json["dtype"] = *dtype;
  if (const auto scale = flags.number("--softmax-scale")) json["softmax_scale"] = *scale;
  if (const auto causal = flags.text("--causal")) json["causal"] = causal->empty() ? "bottom-right" : *causal;
  if (const auto window = flags.text("--window")) {
    const auto [left, right] = parse_pair("window", *window);
    json["window_left"] = left;
    json["window_right"] = right;
  }
  for (const char* const name : {"--prefix", "--page-size", "--num-pages", "--num-splits"})
    if (const auto value = integer(flags, name)) json[field_of(name)] = *value;
  for (const std::string& name : list_flags)
    if (const auto list = flags.text(name)) json[field_of(name)] = parse_integers(field_of(name), *list);
  for (const std::string& name : toggle_flags)
    if (flags.given(name)) json[field_of(name)] = true;
  if (const auto softcap = flags.number("--softcap")) json["softcap"] = *softcap;
  if (const auto bias = flags.text("--bias")) json["bias"] = bias->empty() ? "bhqk" : *bias;
  if (const auto table = flags.text("--page-table")) json["page_table"] = parse_page_table(*table);
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
