// Attention layers of real models, with the dimensions of their published configurations.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "attest/problem/problem.h"

namespace attest {

struct Model {
  std::string name;
  std::string description;
  std::string source;  // the configuration or paper that the numbers are from
  std::int64_t num_layers = 0, nheads = 0, nheads_k = 0, headdim = 0, headdim_v = 0;
  Dtype dtype = Dtype::bf16;
  Causal causal = Causal::none;
  std::int64_t window_left = -1;  // keys before the diagonal, inclusive; -1: unlimited
  double softcap = 0;             // 0: none
  bool sink = false;
  std::int64_t max_seqlen = 0;  // that the model was built for; nothing here refuses more
};

/// {"schema": "attest/model/1", every field by its name}. All are required but headdim_v (as headdim), softcap (none)
/// and sink (false), and no other is taken; throws InvalidInput naming field, value, limit and `file`. A model whose
/// layers differ is one file for each kind.
Model model_from_json_text(std::string_view text, std::string_view file);

/// The model of that name, or of a .json file. Throws InvalidInput naming `model`, EnvironmentError for an unreadable
/// file.
Model load_model(const std::string& name_or_path);
std::vector<std::string> model_names();  // sorted

/// One attention layer of the model on `batch` sequences of `seqlen` tokens, prompt phase: every token is a query.
/// Throws InvalidInput as validate() does.
Problem problem_of(const Model& model, std::int64_t seqlen, std::int64_t batch = 1);

}  // namespace attest
