// attest reference: attention in float64, from .npy files or from a case's own recipe, into .npy files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "attest/reference/forward.h"
#include "case_flags.h"
#include "commands.h"
#include "npy.h"
#include "output.h"
#include "parse.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// Which field of a problem each extent of an array is.
struct ArrayFlag {
  const char* name;
  const char* fields[4];
};
constexpr ArrayFlag array_flags[] = {{"--q", {"batch", "seqlen_q", "nheads", "headdim"}},
                                     {"--k", {"batch", "seqlen_k", "nheads_k", "headdim"}},
                                     {"--v", {"batch", "seqlen_k", "nheads_k", "headdim_v"}}};
const std::vector<std::string> recipe_flags = {"--layout", "--base-offset", "--inputs", "--seed"};

// Reads one array; its extents become fields, or must be what the fields already say.
Tensor read_array(const Flags& flags, const ArrayFlag& flag, Json& fields) {
  const std::string file = *flags.text(flag.name);
  const std::string field = field_of(flag.name);
  constexpr std::size_t largest_file = std::size_t{1} << 40;
  NpyArray array = parse_npy(field, file, read_file(field, file, largest_file));
  if (array.shape.size() != 4)
    throw InvalidInput(
        field, fmt::format("shape ({})", fmt::join(array.shape, ", ")),
        fmt::format("has {} extents, not the 4 of ({})", array.shape.size(), fmt::join(flag.fields, ", ")));
  for (std::size_t k = 0; k < 4; ++k) {
    const char* const name = flag.fields[k];
    if (!fields.contains(name)) fields[name] = array.shape[k];
    const auto expected = fields[name].get<std::int64_t>();
    if (expected != array.shape[k])
      throw InvalidInput(field, fmt::format("shape ({})", fmt::join(array.shape, ", ")),
                         fmt::format("has {} = {}, which is {} elsewhere", name, array.shape[k], expected));
  }
  Tensor tensor;
  for (std::size_t k = 0; k < 4; ++k) tensor.extents[k] = array.shape[k];
  tensor.values = std::move(array.values);
  return tensor;
}

struct Work {
  Case c;
  Inputs inputs;
  bool from_files = false;
};

Work read_work(const Flags& flags) {
  Json fields = case_fields(flags);
  std::vector<std::string> arrays;
  for (const ArrayFlag& flag : array_flags) arrays.emplace_back(flag.name);
  const std::vector<std::string> given = flags.given_of(arrays);
  if (given.empty()) {
    const Case c = case_from_json(fields);
    return {c, make_inputs(c), false};
  }
  if (given.size() < arrays.size())
    throw InvalidInput(field_of(given[0]), in_quotes(*flags.text(given[0])),
                       "is given without the others of --q, --k, --v");
  for (const std::string& name : flags.given_of(recipe_flags))
    throw InvalidInput(field_of(name), in_quotes(*flags.text(name)), "contradicts --q, --k, --v, which are the inputs");
  Work work;
  work.from_files = true;
  work.inputs.q = read_array(flags, array_flags[0], fields);
  work.inputs.k = read_array(flags, array_flags[1], fields);
  work.inputs.v = read_array(flags, array_flags[2], fields);
  work.c = case_from_json(fields);
  return work;
}

std::string array_bytes(const Tensor& tensor, std::size_t num_extents) {
  return npy_bytes({tensor.extents.begin(), tensor.extents.begin() + static_cast<std::ptrdiff_t>(num_extents)},
                   tensor.values);
}

ExitCode run(const Flags& flags) {
  const Results results(flags);
  const auto out = flags.text("--out");
  if (!out || out->empty()) throw InvalidInput("out", "''", "is no folder; --out DIR says where the arrays go");
  const Work work = read_work(flags);

  std::error_code error;
  fs::create_directories(*out, error);
  if (error) throw EnvironmentError(fmt::format("{}: cannot be made: {}", in_quotes(*out), error.message()));
  const fs::path folder = *out;
  const OutputFile o(folder / "o.npy"), lse(folder / "lse.npy");
  std::vector<OutputFile> drawn;
  if (!work.from_files)
    for (const char* name : {"q.npy", "k.npy", "v.npy"}) drawn.emplace_back(folder / name);

  const Forward forward = attest::forward(work.c.problem, work.inputs);
  o.write(array_bytes(forward.o, 4));
  lse.write(array_bytes(forward.lse, 3));
  std::vector<std::string> files = {o.path().string(), lse.path().string()};
  if (!drawn.empty()) {
    drawn[0].write(array_bytes(work.inputs.q, 4));
    drawn[1].write(array_bytes(work.inputs.k, 4));
    drawn[2].write(array_bytes(work.inputs.v, 4));
    for (const OutputFile& file : drawn) files.push_back(file.path().string());
  }

  Json json;
  json["case"] = to_json(work.c);
  json["inputs"] = work.from_files ? "files" : "drawn";
  json["files"] = files;
  results.finish("reference", json, fmt::format("wrote {}\n", fmt::join(files, ", ")));
  return exit_pass;
}

}  // namespace

Command reference_command() {
  return {"reference", "The float64 truth, as .npy files",
          "  attest reference --causal --q q.npy --k k.npy --v v.npy --out truth\n"
          "  attest reference --seqlen-q 64 --seqlen-k 512 --window 128,0 --out truth",
          [](Flags& flags) {
            flags.group("Arrays, (batch, seqlen, heads, dim) of float16, float32 or float64");
            flags.value("--q", "FILE", "Queries; sizes that no flag gives are taken from the arrays");
            flags.value("--k", "FILE", "Keys");
            flags.value("--v", "FILE", "Values; without arrays, inputs are drawn as --inputs and --seed say");
            flags.value("--out", "DIR", "Gets o.npy and lse.npy in float64, and q, k, v if they were drawn");
            declare_case_flags(flags);
          },
          run};
}

}  // namespace attest::tools
