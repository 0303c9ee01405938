#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "attest/problem/case.h"
#include "attest/problem/error.h"
#include "attest/problem/json_reader.h"
#include "attest/problem/text.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;
using Lengths = std::vector<std::int64_t>;

constexpr std::string_view schema_prefix = "attest/case/";
constexpr int schema_version = 1;
constexpr std::size_t most_integers = 1 << 20;

std::string brief(const Json& value) {  // never a page of somebody's file in an error of one line
  return shortened(value.dump(), 57);
}

// Reads the members of a case one by one and then says which were not known.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {
    if (!json.is_object()) throw InvalidInput("case", brief(json), "is not a JSON object");
    const auto schema = json.find("schema");
    if (schema == json.end()) return;
    const std::string text = schema->is_string() ? schema->get<std::string>() : brief(*schema);
    if (text != fmt::format("{}{}", schema_prefix, schema_version))
      throw InvalidInput("schema", fmt::format("'{}'", text),
                         fmt::format("is not '{}{}', the one this version reads", schema_prefix, schema_version));
  }

  bool has(const char* field) const { return json_.contains(field); }

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

  void toggle(const char* field, bool& out) {
    if (const Json* value = find(field)) {
      if (!value->is_boolean()) throw InvalidInput(field, brief(*value), "is neither true nor false");
      out = value->get<bool>();
    }
  }

  void integers(const std::string& field, const Json& value, Lengths& out) {
    if (!value.is_array()) throw InvalidInput(field, brief(value), "is not a list of integers");
    if (value.size() > most_integers)
      throw InvalidInput(field, fmt::format("of {} numbers", value.size()),
                         fmt::format("has more than {}", most_integers));
    out.clear();
    for (const Json& item : value) {
      const bool fits = item.is_number_integer() &&
                        !(item.is_number_unsigned() && item.get<std::uint64_t>() > std::uint64_t{INT64_MAX});
      if (!fits)
        throw InvalidInput(fmt::format("{}[{}]", field, out.size()), brief(item), "is not an integer of 64 bits");
      out.push_back(item.get<std::int64_t>());
    }
  }
  void integers(const char* field, Lengths& out) {
    if (const Json* value = find(field)) {
      refuse_empty(field, *value);
      integers(field, *value, out);
    }
  }
  void integers(const char* field, std::vector<Lengths>& out) {
    const Json* value = find(field);
    if (!value) return;
    if (!value->is_array()) throw InvalidInput(field, brief(*value), "is not a list of lists of integers");
    refuse_empty(field, *value);
    for (const Json& row : *value) {
      const std::string place = fmt::format("{}[{}]", field, out.size());
      integers(place, row, out.emplace_back());
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
      if (key != "schema" && std::find(asked_.begin(), asked_.end(), key) == asked_.end())
        throw InvalidInput(key, brief(value), "is no field of a case");
  }

  const std::vector<std::string>& asked() const { return asked_; }  // each field once

 private:
  const Json* find(const char* field) {
    if (std::find(asked_.begin(), asked_.end(), field) == asked_.end()) asked_.emplace_back(field);
    const auto at = json_.find(field);
    return at == json_.end() ? nullptr : &*at;
  }

  // A case without the feature leaves its field out, as to_json() does.
  static void refuse_empty(const char* field, const Json& value) {
    if (value.is_array() && value.empty()) throw InvalidInput(field, "[]", "is an empty list; leave the field out");
  }

  const Json& json_;
  std::vector<std::string> asked_;
};

// The lengths that running sums from 0 give.
Lengths lengths_of(const std::string& field, const Lengths& sums, std::optional<std::int64_t> total) {
  if (sums.empty() || sums.front() != 0)
    throw InvalidInput(field, sums.empty() ? "of no numbers" : fmt::format("{}", sums.front()),
                       "does not begin with 0");
  if (sums.size() == 1)
    throw InvalidInput(field, "of one number", "has no batch entry: the sums of N lengths are N + 1");
  Lengths lengths;
  for (std::size_t b = 1; b < sums.size(); ++b) {
    if (sums[b] < sums[b - 1])
      throw InvalidInput(fmt::format("{}[{}]", field, b), fmt::format("{}", sums[b]),
                         fmt::format("is below {} before it: the sums must ascend", sums[b - 1]));
    lengths.push_back(sums[b] - sums[b - 1]);
  }
  if (total && *total != sums.back())
    throw InvalidInput(field, fmt::format("ending at {}", sums.back()),
                       fmt::format("does not end at the total, {}", *total));
  return lengths;
}

// varlen_q, or cu_seqlens_q in its place; likewise k. Batch and the longest length follow where they are not given.
void read_varlen(Reader& reader, const std::string& side, std::int64_t& batch, std::int64_t& seqlen, Lengths& lengths) {
  const std::string varlen = "varlen_" + side, sums_name = "cu_seqlens_" + side, total_name = "total_" + side;
  reader.integers(varlen.c_str(), lengths);
  Lengths sums;
  std::optional<std::int64_t> total;
  reader.integers(sums_name.c_str(), sums);
  if (reader.has(total_name.c_str())) reader.integer(total_name.c_str(), total.emplace());
  if (reader.has(sums_name.c_str())) {
    if (reader.has(varlen.c_str()))
      throw InvalidInput(sums_name, fmt::format("of {} numbers", sums.size()), fmt::format("contradicts {}", varlen));
    lengths = lengths_of(sums_name, sums, total);
  } else if (total) {
    throw InvalidInput(total_name, fmt::format("{}", *total), fmt::format("goes with {}", sums_name));
  }
  if (lengths.empty()) return;
  if (!reader.has("batch")) batch = std::ssize(lengths);
  if (!reader.has(("seqlen_" + side).c_str())) seqlen = *std::max_element(lengths.begin(), lengths.end());
}

}  // namespace

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
  if (p.prefix != 0) json["prefix"] = p.prefix;
  if (!p.documents.empty()) json["documents"] = p.documents;
  if (p.softcap != 0) json["softcap"] = p.softcap;
  if (p.alibi) json["alibi"] = true;
  if (p.sink) json["sink"] = true;
  if (p.bias != Bias::none) json["bias"] = to_string(p.bias);
  if (!p.varlen_q.empty()) json["varlen_q"] = p.varlen_q;
  if (!p.varlen_k.empty()) json["varlen_k"] = p.varlen_k;
  if (!p.seqused_k.empty()) json["seqused_k"] = p.seqused_k;
  json["layout"] = layout_spec(c.layout);
  json["base_offset"] = c.layout.base_offset;
  if (c.layout.page_size != 0) json["page_size"] = c.layout.page_size;
  if (c.layout.num_pages != 0) json["num_pages"] = c.layout.num_pages;
  if (!c.layout.page_table.empty()) json["page_table"] = c.layout.page_table;
  if (c.num_splits != 1) json["num_splits"] = c.num_splits;
  if (c.backward) json["backward"] = true;
  if (c.deterministic) json["deterministic"] = true;
  json["inputs"] = to_string(c.inputs);
  json["seed"] = c.seed;
  return json;
}

namespace {

void read_fields(Reader& reader, Case& c) {
  Problem& p = c.problem;
  reader.integer("batch", p.batch);
  read_varlen(reader, "q", p.batch, p.seqlen_q, p.varlen_q);
  reader.integer("nheads", p.nheads);
  p.nheads_k = p.nheads;
  reader.integer("nheads_k", p.nheads_k);
  reader.integer("seqlen_q", p.seqlen_q);
  if (!reader.has("seqlen_k")) p.seqlen_k = p.seqlen_q;
  read_varlen(reader, "k", p.batch, p.seqlen_k, p.varlen_k);
  reader.integer("seqlen_k", p.seqlen_k);
  reader.integer("headdim", p.headdim);
  p.headdim_v = p.headdim;
  reader.integer("headdim_v", p.headdim_v);
  reader.word("dtype", p.dtype, dtype_from_string);
  reader.number("softmax_scale", p.softmax_scale);
  reader.word("causal", p.causal, causal_from_string);
  reader.integer("window_left", p.window_left);
  reader.integer("window_right", p.window_right);
  reader.integer("prefix", p.prefix);
  reader.integers("documents", p.documents);
  std::optional<double> softcap;
  reader.number("softcap", softcap);
  p.softcap = softcap.value_or(0);
  reader.toggle("alibi", p.alibi);
  reader.toggle("sink", p.sink);
  reader.word("bias", p.bias, bias_from_string);
  reader.integers("seqused_k", p.seqused_k);
  reader.word("layout", c.layout, layout_from_spec);
  reader.integer("base_offset", c.layout.base_offset);
  reader.integer("page_size", c.layout.page_size);
  reader.integer("num_pages", c.layout.num_pages);
  reader.integers("page_table", c.layout.page_table);
  reader.integer("num_splits", c.num_splits);
  reader.toggle("backward", c.backward);
  reader.toggle("deterministic", c.deterministic);
  reader.word("inputs", c.inputs, distribution_from_string);
  reader.unsigned_integer("seed", c.seed);
}

}  // namespace

std::vector<std::string> case_field_names() {
  const Json none = Json::object();
  Reader reader(none);
  Case c;
  read_fields(reader, c);
  return reader.asked();
}

Case case_from_json(const Json& json) {
  Case c;
  Reader reader(json);
  read_fields(reader, c);
  reader.finish();
  validate(c);
  return c;
}

Case case_from_json_text(std::string_view text) {
  Json json;
  std::vector<std::set<std::string>> seen;  // keys of the objects that are open
  std::string twice, last_key;
  constexpr int deepest = 8;  // the library's own printing recurses
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > deepest) throw InvalidInput("case", fmt::format("nested {} deep", depth), "is no case");
    if (event == Json::parse_event_t::object_start) seen.emplace_back();
    if (event == Json::parse_event_t::object_end) seen.pop_back();
    if (event == Json::parse_event_t::key) {
      last_key = parsed.get<std::string>();
      if (!seen.back().insert(last_key).second) twice = last_key;
    }
    return true;
  };
  if (const std::size_t end = text.find('\0'); end != std::string_view::npos)  // the library's end of a text
    throw InvalidInput("case", fmt::format("{} bytes", text.size()),
                       fmt::format("are not JSON: 0 at byte {}", end + 1));
  try {
    json = Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    throw InvalidInput("case", fmt::format("{} bytes", text.size()),
                       fmt::format("are not JSON: malformed at byte {}", error.byte));
  } catch (const Json::out_of_range& error) {  // "... number overflow parsing '1e400'"
    const std::string_view what = error.what();
    const std::size_t quote = what.find('\'');
    const std::string_view number = what.substr(std::min(quote + 1, what.size()));
    throw InvalidInput(last_key.empty() ? "case" : last_key, shown_number(number.substr(0, number.find('\''))),
                       "is beyond float64, whose largest is 1.8e308");
  }
  if (!twice.empty()) throw InvalidInput(twice, "given twice;", "must be given once");
  if (const auto tiny = tiny_number(text)) throw InvalidInput(tiny->name, shown_number(tiny->number), no_float64);
  return case_from_json(json);
}

}  // namespace attest
