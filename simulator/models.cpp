#include "attest/simulator/models.h"

#include <fmt/format.h>

#include <algorithm>

#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "attest/problem/json_reader.h"
#include "embedded.h"

namespace attest {

Model model_from_json_text(std::string_view text, std::string_view file) {
  const JsonReader reader(file);
  const JsonReader::Json json = reader.parse("model", text);
  reader.only(json, "",
              {"schema", "name", "description", "source", "num_layers", "nheads", "nheads_k", "headdim", "headdim_v",
               "dtype", "causal", "window_left", "softcap", "sink", "max_seqlen"});
  if (const std::string schema = reader.text(json, "schema", "schema"); schema != "attest/model/1")
    reader.refuse("schema", fmt::format("'{}'", schema), "is not attest/model/1");
  Model m;
  m.name = reader.text(json, "name", "name");
  m.description = reader.text(json, "description", "description");
  m.source = reader.text(json, "source", "source");
  m.num_layers = reader.integer(json, "num_layers", "num_layers", 1, 1 << 16);
  m.nheads = reader.integer(json, "nheads", "nheads", 1, 1 << 16);
  m.nheads_k = reader.integer(json, "nheads_k", "nheads_k", 1, 1 << 16);
  m.headdim = reader.integer(json, "headdim", "headdim", 1, 256);
  m.headdim_v = json.contains("headdim_v") ? reader.integer(json, "headdim_v", "headdim_v", 1, 256) : m.headdim;
  m.dtype = dtype_from_string(reader.text(json, "dtype", "dtype"));
  m.causal = causal_from_string(reader.text(json, "causal", "causal"));
  m.window_left = reader.integer(json, "window_left", "window_left", -1, 1 << 30);
  if (json.contains("softcap")) m.softcap = reader.number(json, "softcap", "softcap", 0x1p-20, 0x1p20);
  if (json.contains("sink")) m.sink = reader.boolean(json, "sink", "sink");
  m.max_seqlen = reader.integer(json, "max_seqlen", "max_seqlen", 1, 1 << 26);
  if (m.nheads % m.nheads_k != 0)
    reader.refuse("nheads", fmt::format("{}", m.nheads), fmt::format("is not a multiple of nheads_k = {}", m.nheads_k));
  return m;
}

Model load_model(const std::string& name_or_path) {
  if (is_path(name_or_path))
    return model_from_json_text(read_file("model", name_or_path, largest_description_bytes), name_or_path);
  for (const EmbeddedFile& file : embedded_models())
    if (file.name == name_or_path) return model_from_json_text(file.text, fmt::format("{}.json", file.name));
  throw InvalidInput("model", fmt::format("'{}'", name_or_path),
                     fmt::format("is none of {}, nor a .json file", fmt::join(model_names(), ", ")));
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_models()) names.emplace_back(file.name);
  std::sort(names.begin(), names.end());  // files are in the order of their names with ".json"
  return names;
}

Problem problem_of(const Model& model, std::int64_t seqlen, std::int64_t batch) {
  Problem p;
  p.batch = batch;
  p.nheads = model.nheads;
  p.nheads_k = model.nheads_k;
  p.seqlen_q = p.seqlen_k = seqlen;
  p.headdim = model.headdim;
  p.headdim_v = model.headdim_v;
  p.dtype = model.dtype;
  p.causal = model.causal;
  p.window_left = model.window_left;
  p.softcap = model.softcap;
  p.sink = model.sink;
  validate(p);
  return p;
}

}  // namespace attest
