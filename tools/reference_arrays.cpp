#include "reference_arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "npy.h"
#include "parse.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

const std::vector<std::string> sequence_flags = {"--q", "--k", "--v"};
const std::vector<std::string> array_flags = {
    "--q",         "--k",         "--v",         "--dout",     "--bias-file", "--alibi-slopes",
    "--sink-file", "--q-descale", "--k-descale", "--v-descale"};
const std::vector<std::string> recipe_flags = {"--layout", "--base-offset", "--inputs", "--seed"};

[[noreturn]] void wrong_shape(const std::string& field, const NpyArray& array, const std::string& why) {
  throw InvalidInput(field, fmt::format("shape ({})", fmt::join(array.shape, ", ")), why);
}

NpyArray read_npy(const Flags& flags, const std::string& flag, const Names& names) {
  constexpr std::size_t largest_file = std::size_t{1} << 40;
  const std::string file = *flags.text(flag), field = field_of(flag);
  NpyArray array = parse_npy(field, file, read_file(field, file, largest_file));
  if (array.shape.size() != names.size())
    wrong_shape(
        field, array,
        fmt::format("has {} extents, not the {} of ({})", array.shape.size(), names.size(), fmt::join(names, ", ")));
  return array;
}

// Extent `axis` becomes the field, or must be what it already says.
void settle(const std::string& field, const NpyArray& array, std::size_t axis, const std::string& name, Json& fields) {
  if (!fields.contains(name)) fields[name] = array.shape[axis];
  const auto expected = fields[name].get<std::int64_t>();
  if (expected != array.shape[axis])
    wrong_shape(field, array, fmt::format("has {} = {}, which is {} elsewhere", name, array.shape[axis], expected));
}

std::vector<std::int64_t> lengths_of(const Json& fields, const std::string& name) {
  const std::string sums = "cu_seqlens" + name.substr(name.size() - 2);  // which a case file may have in its place
  if (fields.contains(sums)) {
    const auto ends = fields[sums].get<std::vector<std::int64_t>>();
    std::vector<std::int64_t> lengths;
    for (std::size_t b = 1; b < ends.size(); ++b) {
      if (ends[b] < ends[b - 1]) throw InvalidInput(sums, fmt::format("{}", ends[b]), "descends");
      lengths.push_back(ends[b] - ends[b - 1]);
    }
    return lengths;
  }
  if (!fields.contains(name)) return {};
  auto lengths = fields[name].get<std::vector<std::int64_t>>();
  for (const std::int64_t length : lengths)
    if (length < 0) throw InvalidInput(name, fmt::format("{}", length), "is negative");
  return lengths;
}

// (batch, seqlen, heads, dim), or packed (total, heads, dim) where the case has lengths.
Tensor read_sequences(const Flags& flags, const std::string& flag, const Names& names, const std::string& varlen,
                      Json& fields) {
  const std::string field = field_of(flag);
  const std::vector<std::int64_t> lengths = lengths_of(fields, varlen);
  Tensor tensor;
  if (lengths.empty()) {
    NpyArray array = read_npy(flags, flag, names);
    for (std::size_t k = 0; k < 4; ++k) {
      settle(field, array, k, names[k], fields);
      tensor.extents[k] = array.shape[k];
    }
    tensor.values = std::move(array.values);
    return tensor;
  }
  NpyArray array = read_npy(flags, flag, {"total of " + varlen, names[2], names[3]});
  settle(field, array, 1, names[2], fields);
  settle(field, array, 2, names[3], fields);
  std::int64_t total = 0, longest = 0;
  for (const std::int64_t length : lengths) {
    longest = std::max(longest, length);
    total = length > array.shape[0] - total ? array.shape[0] + 1 : total + length;
    if (total > array.shape[0]) break;
  }
  if (total != array.shape[0])
    wrong_shape(field, array, fmt::format("has {} rows, which is not the sum of {}", array.shape[0], varlen));
  const std::int64_t row = array.shape[1] * array.shape[2];
  const __int128 padded = static_cast<__int128>(lengths.size()) * longest * row;
  if (padded >= __int128{1} << 40)
    wrong_shape(field, array, "is 2^40 elements or more once every entry has the longest length");
  tensor = Tensor({std::ssize(lengths), longest, array.shape[1], array.shape[2]});
  auto from = array.values.begin();
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    std::copy(from, from + lengths[b] * row, tensor.values.begin() + static_cast<std::int64_t>(b) * longest * row);
    from += lengths[b] * row;
  }
  return tensor;
}

// An array whose extents the case settles: names with what each must be.
Tensor read_small(const Flags& flags, const std::string& flag,
                  const std::vector<std::pair<std::string, std::int64_t>>& axes, std::array<std::int64_t, 4> extents) {
  Names names;
  for (const auto& axis : axes) names.push_back(axis.first);
  NpyArray array = read_npy(flags, flag, names);
  for (std::size_t k = 0; k < axes.size(); ++k)
    if (array.shape[k] != axes[k].second)
      wrong_shape(field_of(flag), array,
                  fmt::format("has {} = {}, not {}", axes[k].first, array.shape[k], axes[k].second));
  Tensor tensor;
  tensor.extents = extents;
  tensor.values = std::move(array.values);
  return tensor;
}

// An array that the case needs, or must not have.
bool belongs(const Flags& flags, const std::string& flag, const std::string& feature, bool has_feature) {
  if (has_feature && !flags.given(flag))
    throw InvalidInput(field_of(feature), "given", fmt::format("needs {} FILE beside --q, --k, --v", flag));
  if (!has_feature && flags.given(flag))
    throw InvalidInput(field_of(flag), in_quotes(*flags.text(flag)), fmt::format("needs {}", feature));
  return has_feature;
}

void read_modifiers(const Flags& flags, const Problem& p, Inputs& inputs) {
  if (belongs(flags, "--bias-file", "--bias", p.bias != Bias::none)) {
    const std::int64_t batch = p.bias == Bias::bhqk || p.bias == Bias::bqk ? p.batch : 1;
    const std::int64_t heads = p.bias == Bias::bhqk || p.bias == Bias::hqk ? p.nheads : 1;
    inputs.bias = read_small(flags, "--bias-file",
                             {{"batch", batch}, {"nheads", heads}, {"seqlen_q", p.seqlen_q}, {"seqlen_k", p.seqlen_k}},
                             {batch, heads, p.seqlen_q, p.seqlen_k});
  }
  if (belongs(flags, "--alibi-slopes", "--alibi", p.alibi))
    inputs.alibi_slopes =
        read_small(flags, "--alibi-slopes", {{"batch", p.batch}, {"nheads", p.nheads}}, {p.batch, p.nheads, 1, 1});
  if (belongs(flags, "--sink-file", "--sink", p.sink))
    inputs.sink = read_small(flags, "--sink-file", {{"nheads", p.nheads}}, {1, p.nheads, 1, 1});
  const bool fp8 = is_fp8(p.dtype);
  for (const auto& [flag, tensor] : {std::pair{"--q-descale", &inputs.q_descale},
                                     {"--k-descale", &inputs.k_descale},
                                     {"--v-descale", &inputs.v_descale}}) {
    if (!fp8 && flags.given(flag)) belongs(flags, flag, "a --dtype of 8 bits", false);
    if (fp8 && !flags.given(flag)) *tensor = Tensor({p.batch, p.nheads_k, 1, 1}, 1);
    if (fp8 && flags.given(flag))
      *tensor = read_small(flags, flag, {{"batch", p.batch}, {"nheads_k", p.nheads_k}}, {p.batch, p.nheads_k, 1, 1});
  }
}

}  // namespace

void declare_array_flags(Flags& flags) {
  flags.group("Arrays, (batch, seqlen, heads, dim) of float16, float32 or float64; with --varlen (total, heads, dim)");
  flags.value("--q", "FILE", "Queries; sizes that no flag gives are taken from the arrays");
  flags.value("--k", "FILE", "Keys");
  flags.value("--v", "FILE", "Values; without arrays, inputs are drawn as --inputs and --seed say");
  flags.value("--dout", "FILE", "The gradient of O; asks for the others as --backward does");
  flags.value("--bias-file", "FILE", "The bias, (batch or 1, nheads or 1, seqlen_q, seqlen_k) as --bias says");
  flags.value("--alibi-slopes", "FILE", "Slopes of --alibi, (batch, nheads)");
  flags.value("--sink-file", "FILE", "Scores of --sink, (nheads)");
  flags.value("--q-descale", "FILE", "Factors of 8-bit queries, (batch, nheads_k); 1 if not given");
  flags.value("--k-descale", "FILE", "Of keys");
  flags.value("--v-descale", "FILE", "Of values");
}

bool arrays_given(const Flags& flags) {
  const std::vector<std::string> given = flags.given_of(array_flags);
  if (given.empty()) return false;
  if (flags.given_of(sequence_flags).size() < sequence_flags.size())
    throw InvalidInput(field_of(given[0]), in_quotes(*flags.text(given[0])),
                       "is given without the others of --q, --k, --v");
  for (const std::string& name : flags.given_of(recipe_flags))
    throw InvalidInput(field_of(name), in_quotes(*flags.text(name)), "contradicts --q, --k, --v, which are the inputs");
  return true;
}

CaseWithInputs read_arrays(const Flags& flags, Json fields) {
  CaseWithInputs work;
  Inputs& in = work.inputs;
  in.q = read_sequences(flags, "--q", {"batch", "seqlen_q", "nheads", "headdim"}, "varlen_q", fields);
  in.k = read_sequences(flags, "--k", {"batch", "seqlen_k", "nheads_k", "headdim"}, "varlen_k", fields);
  in.v = read_sequences(flags, "--v", {"batch", "seqlen_k", "nheads_k", "headdim_v"}, "varlen_k", fields);
  if (flags.given("--dout")) {
    in.dout = read_sequences(flags, "--dout", {"batch", "seqlen_q", "nheads", "headdim_v"}, "varlen_q", fields);
    fields["backward"] = true;
  }
  work.c = case_from_json(fields);
  belongs(flags, "--dout", "--backward", work.c.backward);
  read_modifiers(flags, work.c.problem, in);
  return work;
}

std::pair<std::vector<std::int64_t>, std::vector<double>> packed(const Tensor& tensor,
                                                                 const std::vector<std::int64_t>& lengths) {
  const auto& e = tensor.extents;
  if (lengths.empty()) return {{e.begin(), e.end()}, tensor.values};
  std::vector<double> values;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const auto first = tensor.values.begin() + static_cast<std::int64_t>(b) * e[1] * e[2] * e[3];
    values.insert(values.end(), first, first + lengths[b] * e[2] * e[3]);
  }
  return {{std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), e[2], e[3]}, values};
}

std::pair<std::vector<std::int64_t>, std::vector<double>> packed_lse(const Tensor& lse,
                                                                     const std::vector<std::int64_t>& lengths) {
  const auto& e = lse.extents;
  if (lengths.empty()) return {{e[0], e[1], e[2]}, lse.values};
  std::vector<double> values;
  for (std::int64_t h = 0; h < e[1]; ++h)
    for (std::size_t b = 0; b < lengths.size(); ++b)
      for (std::int64_t i = 0; i < lengths[b]; ++i) values.push_back(lse.at(static_cast<std::int64_t>(b), h, i, 0));
  return {{e[1], std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})}, values};
}

}  // namespace attest::tools
