// attest models: the attention layers of real models, for --model.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "attest/simulator/models.h"
#include "commands.h"
#include "output.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

ExitCode run(const Flags& flags) {
  const Results results(flags);
  Json models = Json::array();
  std::string text = fmt::format("{:<20} {:>6} {:>8} {:>7} {:>6} {:>7} {:>7}  {}\n", "model", "nheads", "nheads_k",
                                 "headdim", "layers", "window", "softcap", "");
  for (const std::string& name : model_names()) {
    const Model model = load_model(name);
    models.push_back({{"name", name},
                      {"description", model.description},
                      {"num_layers", model.num_layers},
                      {"nheads", model.nheads},
                      {"nheads_k", model.nheads_k},
                      {"headdim", model.headdim},
                      {"headdim_v", model.headdim_v},
                      {"dtype", to_string(model.dtype)},
                      {"causal", to_string(model.causal)},
                      {"window_left", model.window_left},
                      {"softcap", model.softcap},
                      {"sink", model.sink},
                      {"max_seqlen", model.max_seqlen},
                      {"source", model.source}});
    const std::string window = model.window_left < 0 ? "-" : fmt::format("{}", model.window_left);
    const std::string headdim =
        fmt::format("{}{}", model.headdim, model.headdim_v == model.headdim ? "" : fmt::format("/{}", model.headdim_v));
    const std::string softcap = model.softcap == 0 ? "-" : fmt::format("{}", model.softcap);
    text += fmt::format("{:<20} {:>6} {:>8} {:>7} {:>6} {:>7} {:>7}  {}\n", name, model.nheads, model.nheads_k, headdim,
                        model.num_layers, window, softcap, model.description);
  }
  results.finish("models", {{"models", models}}, text);
  return exit_pass;
}

}  // namespace

Command models_command() {
  return {"models", "Attention layers of real models, for --model", "  attest models", [](Flags&) {}, run};
}

}  // namespace attest::tools
