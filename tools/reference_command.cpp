// attest reference: attention in float64, from .npy files or from a case's own recipe, into .npy files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "attest/problem/error.h"
#include "attest/reference/backward.h"
#include "attest/reference/forward.h"
#include "case_flags.h"
#include "commands.h"
#include "npy.h"
#include "output.h"
#include "parse.h"
#include "reference_arrays.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct Array {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

// What was drawn, under the names of the flags that read it again.
std::vector<Array> drawn_arrays(const Problem& p, const Inputs& in) {
  std::vector<Array> arrays;
  const auto add = [&](const char* name, const Tensor& tensor, const std::vector<std::int64_t>& lengths) {
    auto [shape, values] = packed(tensor, lengths);
    arrays.push_back({name, std::move(shape), std::move(values)});
  };
  add("q", in.q, p.varlen_q);
  add("k", in.k, p.varlen_k);
  add("v", in.v, p.varlen_k);
  if (!in.dout.values.empty()) add("dout", in.dout, p.varlen_q);
  if (p.bias != Bias::none) add("bias", in.bias, {});
  if (p.alibi) arrays.push_back({"alibi_slopes", {p.batch, p.nheads}, in.alibi_slopes.values});
  if (p.sink) arrays.push_back({"sink", {p.nheads}, in.sink.values});
  if (is_fp8(p.dtype))
    for (const auto& [name, tensor] :
         {std::pair{"q_descale", &in.q_descale}, {"k_descale", &in.k_descale}, {"v_descale", &in.v_descale}})
      arrays.push_back({name, {p.batch, p.nheads_k}, tensor->values});
  return arrays;
}

void add_gradient_arrays(const Problem& p, const Gradients& gradients, std::vector<Array>& arrays) {
  for (const auto& [name, tensor, lengths] : {std::tuple{"dq", &gradients.dq, &p.varlen_q},
                                              {"dk", &gradients.dk, &p.varlen_k},
                                              {"dv", &gradients.dv, &p.varlen_k}}) {
    auto [shape, values] = packed(*tensor, *lengths);
    arrays.push_back({name, std::move(shape), std::move(values)});
  }
  if (p.sink) arrays.push_back({"dsink", {p.nheads}, gradients.dsink.values});
  if (p.bias != Bias::none) {
    const auto& e = gradients.dbias.extents;
    arrays.push_back({"dbias", {e.begin(), e.end()}, gradients.dbias.values});
  }
}

ExitCode run(const Flags& flags) {
  const Results results(flags);
  const auto out = flags.text("--out");
  if (out && *out == "-") throw InvalidInput("out", "'-'", "is no folder; only --json writes to stdout");
  if (!out || out->empty()) throw InvalidInput("out", "''", "is no folder; --out DIR says where the arrays go");
  const bool from_files = arrays_given(flags);
  CaseWithInputs work;
  if (from_files) {
    work = read_arrays(flags, case_fields(flags));
  } else {
    work.c = case_from_json(case_fields(flags));
    work.inputs = make_inputs(work.c);
  }
  const Problem& p = work.c.problem;

  std::vector<Array> arrays;
  if (!from_files) arrays = drawn_arrays(p, work.inputs);
  std::vector<const char*> results_of = {"o", "lse"};
  if (work.c.backward) results_of.insert(results_of.end(), {"dq", "dk", "dv"});
  if (work.c.backward && p.sink) results_of.push_back("dsink");
  if (work.c.backward && p.bias != Bias::none) results_of.push_back("dbias");
  std::vector<fs::path> paths;
  paths.reserve(results_of.size() + arrays.size());
  for (const char* name : results_of) paths.push_back(fs::path(*out) / (std::string(name) + ".npy"));
  for (const Array& array : arrays) paths.push_back(fs::path(*out) / (array.name + ".npy"));
  for (const fs::path& path : paths) {
    refuse_replacing(flags, "out", path);
    results.refuse_same_file("out", path);
  }

  std::error_code error;
  fs::create_directories(*out, error);
  if (error) throw EnvironmentError(fmt::format("{}: cannot be made: {}", in_quotes(*out), error.message()));
  const std::vector<OutputFile> outputs(paths.begin(), paths.end());

  const Forward forward = attest::forward(p, work.inputs);
  auto [o_shape, o_values] = packed(forward.o, p.varlen_q);
  auto [lse_shape, lse_values] = packed_lse(forward.lse, p.varlen_q);
  std::vector<Array> computed = {{"o", std::move(o_shape), std::move(o_values)},
                                 {"lse", std::move(lse_shape), std::move(lse_values)}};
  if (work.c.backward) add_gradient_arrays(p, attest::backward(p, work.inputs, forward), computed);
  arrays.insert(arrays.begin(), computed.begin(), computed.end());
  // All beside their places first: arrays of two different runs never stand together.
  std::vector<OutputFile::Staged> staged;
  std::vector<std::string> files;
  for (std::size_t n = 0; n < arrays.size(); ++n) {
    staged.push_back(outputs[n].stage(npy_bytes(arrays[n].shape, arrays[n].values)));
    files.push_back(outputs[n].path().string());
  }

  Json json;
  json["case"] = to_json(work.c);
  json["inputs"] = from_files ? "files" : "drawn";
  json["files"] = files;
  results.finish("reference", json, "", std::move(staged));
  if (!results.json_on_stdout()) fmt::print("wrote {}\n", fmt::join(files, ", "));
  return exit_pass;
}

}  // namespace

Command reference_command() {
  return {"reference", "The float64 truth, as .npy files",
          "  attest reference --causal --q q.npy --k k.npy --v v.npy --out truth\n"
          "  attest reference --causal --q q.npy --k k.npy --v v.npy --dout dout.npy --out truth\n"
          "  attest reference --seqlen-q 64 --seqlen-k 512 --window 128,0 --backward --out truth",
          [](Flags& flags) {
            declare_array_flags(flags);
            flags.value("--out", "DIR",
                        "Gets o.npy and lse.npy in float64, dq, dk, dv and so on, and the inputs if drawn");
            declare_case_flags(flags);
          },
          run};
}

}  // namespace attest::tools
