#include "attest/problem/case.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "attest/problem/error.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view schema_prefix = "attest/case/";
constexpr int schema_version = 1;

void check_layout(std::string_view field, std::int64_t value) {
  constexpr std::int64_t limit = 1 << 20;
  if (value < 0 || value > limit)
    throw InvalidInput(field, fmt::format("{}", value), fmt::format("is outside 0 to {}", limit));
}

// With its gaps a tensor may reach further than its elements.
void check_span(std::string_view tensor, const Layout& layout, std::int64_t batch, std::int64_t seqlen,
                std::int64_t heads, std::int64_t dim) {
  constexpr auto limit = std::int64_t{1} << 40;
  const __int128 rows = static_cast<__int128>(batch) * heads * (seqlen + layout.seq_gap);  // at most 2^(20+16+27)
  if (rows * (dim + layout.row_gap) >= limit)
    throw InvalidInput("layout", fmt::format("'{}'", layout_spec(layout)),
                       fmt::format("spreads {} over 2^40 elements or more, the most a tensor may span", tensor));
}

std::int64_t parse_integer(std::string_view field, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw InvalidInput(field, fmt::format("'{}'", text), "is not an integer of 64 bits");
  return value;
}

std::string brief(const Json& value) {  // never a page of somebody's file in an error of one line
  std::string text = value.dump();
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

// Reads the members of a case one by one and then says which were not known.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {
    if (!json.is_object()) throw InvalidInput("case", brief(json), "is not a JSON object");
    const Json* schema = find("schema");
    if (!schema) return;
    const std::string text = schema->is_string() ? schema->get<std::string>() : brief(*schema);
    if (text != fmt::format("{}{}", schema_prefix, schema_version))
      throw InvalidInput("schema", fmt::format("'{}'", text),
                         fmt::format("is not '{}{}', the one this version reads", schema_prefix, schema_version));
  }

  bool has(const char* field) const { return json_.contains(field) && !json_.at(field).is_null(); }

  void integer(const char* field, std::int64_t& out) {
    if (const Json* value = find(field)) {
      const bool fits = value->is_number_integer() &&
                        !(value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t{INT64_MAX});
      if (!fits) throw InvalidInput(field, brief(*value), "is not an integer of 64 bits");
      out = value->get<std::int64_t>();
    }
  }

  void unsigned_integer(const char* field, std::uint64_t& out) {
    if (const Json* value = find(field)) {
      if (!value->is_number_unsigned()) throw InvalidInput(field, brief(*value), "is not an integer of 0 to 2^64 - 1");
      out = value->get<std::uint64_t>();
    }
  }

  void number(const char* field, std::optional<double>& out) {
    if (const Json* value = find(field)) {
      if (!value->is_number()) throw InvalidInput(field, brief(*value), "is not a number");
      out = value->get<double>();
    }
  }

  template <class T, class Parse>
  void word(const char* field, T& out, Parse parse) {
    if (const Json* value = find(field)) {
      if (!value->is_string()) throw InvalidInput(field, brief(*value), "is not a string");
      out = parse(value->get<std::string>());
    }
  }

  void finish() const {
    for (const auto& [key, value] : json_.items())
      if (!known_.contains(key)) throw InvalidInput(key, brief(value), "is no field of a case");
  }

 private:
  const Json* find(const char* field) {
    known_.insert(field);
    const auto at = json_.find(field);
    return at == json_.end() || at->is_null() ? nullptr : &*at;
  }

  const Json& json_;
  std::set<std::string> known_;
};

}  // namespace

std::string layout_spec(const Layout& layout) {
  std::string spec = layout.order == Layout::Order::bshd ? "bshd" : "bhsd";
  if (layout.row_gap != 0) spec += fmt::format(",row_gap={}", layout.row_gap);
  if (layout.seq_gap != 0) spec += fmt::format(",seq_gap={}", layout.seq_gap);
  return spec;
}

Layout layout_from_spec(std::string_view spec) {
  Layout layout;
  bool first = true;
  for (std::string_view rest = spec; first || !rest.empty(); first = false) {
    const auto comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    if (first && word == "bshd")
      layout.order = Layout::Order::bshd;
    else if (first && word == "bhsd")
      layout.order = Layout::Order::bhsd;
    else if (!first && word.starts_with("row_gap="))
      layout.row_gap = parse_integer("row_gap", word.substr(8));
    else if (!first && word.starts_with("seq_gap="))
      layout.seq_gap = parse_integer("seq_gap", word.substr(8));
    else
      throw InvalidInput("layout", fmt::format("'{}'", word), "is not of the form bshd|bhsd[,row_gap=N][,seq_gap=N]");
  }
  return layout;
}

std::string_view to_string(Distribution distribution) {
  switch (distribution) {
    case Distribution::normal:
      return "normal";
    case Distribution::large:
      return "large";
    case Distribution::shift:
      return "shift";
    case Distribution::zero_q:
      return "zero_q";
    case Distribution::one_v:
      return "one_v";
    case Distribution::one_hot_v:
      return "one_hot_v";
  }
  return "?";
}

Distribution distribution_from_string(std::string_view name) {
  for (const Distribution distribution : all_distributions)
    if (to_string(distribution) == name) return distribution;
  throw InvalidInput("inputs", fmt::format("'{}'", name), "is none of normal, large, shift, zero_q, one_v, one_hot_v");
}

void validate(const Case& c) {
  validate(c.problem);
  check_layout("row_gap", c.layout.row_gap);
  check_layout("seq_gap", c.layout.seq_gap);
  check_layout("base_offset", c.layout.base_offset);
  const Problem& p = c.problem;
  check_span("q", c.layout, p.batch, p.seqlen_q, p.nheads, p.headdim);
  check_span("k", c.layout, p.batch, p.seqlen_k, p.nheads_k, p.headdim);
  check_span("v", c.layout, p.batch, p.seqlen_k, p.nheads_k, p.headdim_v);
  check_span("o", c.layout, p.batch, p.seqlen_q, p.nheads, p.headdim_v);
}

Json to_json(const Case& c) {
  const Problem& p = c.problem;
  Json json;
  json["schema"] = fmt::format("{}{}", schema_prefix, schema_version);
  json["batch"] = p.batch;
  json["nheads"] = p.nheads;
  json["nheads_k"] = p.nheads_k;
  json["seqlen_q"] = p.seqlen_q;
  json["seqlen_k"] = p.seqlen_k;
  json["headdim"] = p.headdim;
  json["headdim_v"] = p.headdim_v;
  json["dtype"] = to_string(p.dtype);
  if (p.softmax_scale) json["softmax_scale"] = *p.softmax_scale;
  json["causal"] = to_string(p.causal);
  json["window_left"] = p.window_left;
  json["window_right"] = p.window_right;
  json["layout"] = layout_spec(c.layout);
  json["base_offset"] = c.layout.base_offset;
  json["inputs"] = to_string(c.inputs);
  json["seed"] = c.seed;
  return json;
}

Case case_from_json(const Json& json) {
  Case c;
  Problem& p = c.problem;
  Reader reader(json);
  reader.integer("batch", p.batch);
  reader.integer("nheads", p.nheads);
  p.nheads_k = p.nheads;
  reader.integer("nheads_k", p.nheads_k);
  reader.integer("seqlen_q", p.seqlen_q);
  if (!reader.has("seqlen_k")) p.seqlen_k = p.seqlen_q;
  reader.integer("seqlen_k", p.seqlen_k);
  reader.integer("headdim", p.headdim);
  p.headdim_v = p.headdim;
  reader.integer("headdim_v", p.headdim_v);
  reader.word("dtype", p.dtype, dtype_from_string);
  reader.number("softmax_scale", p.softmax_scale);
  reader.word("causal", p.causal, causal_from_string);
  reader.integer("window_left", p.window_left);
  reader.integer("window_right", p.window_right);
  reader.word("layout", c.layout, layout_from_spec);
  reader.integer("base_offset", c.layout.base_offset);
  reader.word("inputs", c.inputs, distribution_from_string);
  reader.unsigned_integer("seed", c.seed);
  reader.finish();
  validate(c);
  return c;
}

Case case_from_json_text(std::string_view text) {
  Json json;
  std::vector<std::set<std::string>> seen;  // keys of the objects that are open
  std::string twice;
  constexpr int deepest = 8;  // the library's own printing recurses
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > deepest) throw InvalidInput("case", fmt::format("nested {} deep", depth), "is no case");
    if (event == Json::parse_event_t::object_start) seen.emplace_back();
    if (event == Json::parse_event_t::object_end) seen.pop_back();
    if (event == Json::parse_event_t::key && !seen.back().insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  try {
    json = Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    throw InvalidInput("case", fmt::format("{} bytes", text.size()),
                       fmt::format("are not JSON: malformed at byte {}", error.byte));
  } catch (const Json::out_of_range&) {
    throw InvalidInput("case", fmt::format("{} bytes", text.size()), "hold a number beyond float64");
  }
  if (!twice.empty()) throw InvalidInput(twice, "given twice;", "must be given once");
  return case_from_json(json);
}

std::string command_line(const Case& c) {
  const Problem& p = c.problem;
  std::string line = fmt::format("--batch {} --nheads {} --nheads-k {} --seqlen-q {} --seqlen-k {} --headdim {}",
                                 p.batch, p.nheads, p.nheads_k, p.seqlen_q, p.seqlen_k, p.headdim);
  if (p.headdim_v != p.headdim) line += fmt::format(" --headdim-v {}", p.headdim_v);
  line += fmt::format(" --dtype {}", to_string(p.dtype));
  if (p.softmax_scale) line += fmt::format(" --softmax-scale={}", *p.softmax_scale);
  if (p.causal == Causal::bottom_right) line += " --causal";
  if (p.causal == Causal::top_left) line += " --causal=top-left";
  if (p.window_left != -1 || p.window_right != -1)
    line += fmt::format(" --window={},{}", p.window_left, p.window_right);
  if (const std::string spec = layout_spec(c.layout); spec != "bshd") line += fmt::format(" --layout {}", spec);
  if (c.layout.base_offset != 0) line += fmt::format(" --base-offset {}", c.layout.base_offset);
  if (c.inputs != Distribution::normal) line += fmt::format(" --inputs {}", to_string(c.inputs));
  line += fmt::format(" --seed {}", c.seed);
  return line;
}

}  // namespace attest
