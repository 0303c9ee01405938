#include "attest/simulator/models.h"

#include <gtest/gtest.h>

#include "attest/problem/error.h"

namespace attest {
namespace {

TEST(Models, AllThatTravelLoadAndNameTheirSource) {
  ASSERT_GE(model_names().size(), 19u);
  for (const std::string& name : model_names()) {
    const Model model = load_model(name);
    EXPECT_EQ(model.name, name);
    EXPECT_GE(model.source.size(), 10u);
    EXPECT_EQ(problem_of(model, model.max_seqlen).nheads, model.nheads);
  }
}

TEST(Models, PublishedDimensions) {
  const Problem llama = problem_of(load_model("llama-3-70b"), 8192, 2);
  EXPECT_EQ(llama.batch, 2);
  EXPECT_EQ(llama.nheads, 64);
  EXPECT_EQ(llama.nheads_k, 8);
  EXPECT_EQ(llama.headdim, 128);
  EXPECT_EQ(llama.seqlen_k, 8192);
  EXPECT_EQ(llama.causal, Causal::bottom_right);
  EXPECT_EQ(load_model("llama-3-70b").num_layers, 80);
  EXPECT_EQ(problem_of(load_model("mistral-7b"), 8192).window_left, 4096);
  EXPECT_EQ(problem_of(load_model("falcon-7b"), 2048).nheads, 71);
  EXPECT_EQ(problem_of(load_model("falcon-7b"), 2048).nheads_k, 1);
  EXPECT_EQ(problem_of(load_model("bert-base"), 512).causal, Causal::none);
}

TEST(Models, ModifiedScoresAndUnequalHeadDimensions) {
  const Problem gemma = problem_of(load_model("gemma-2-9b"), 8192);
  EXPECT_EQ(gemma.softcap, 50);
  EXPECT_EQ(gemma.headdim, 256);
  EXPECT_EQ(gemma.window_left, -1);
  EXPECT_FALSE(gemma.sink);
  EXPECT_EQ(problem_of(load_model("gemma-2-9b-window"), 8192).window_left, 4095);
  EXPECT_EQ(problem_of(load_model("phi-3-mini"), 4096).headdim, 96);
  EXPECT_EQ(problem_of(load_model("phi-3-mini"), 4096).window_left, 2047);
  const Problem oss = problem_of(load_model("gpt-oss-120b-window"), 4096);
  EXPECT_TRUE(oss.sink);
  EXPECT_EQ(oss.window_left, 127);
  EXPECT_EQ(oss.headdim_v, 64);
  const Problem deepseek = problem_of(load_model("deepseek-v3"), 4096);
  EXPECT_EQ(deepseek.headdim, 192);
  EXPECT_EQ(deepseek.headdim_v, 128);
  EXPECT_EQ(deepseek.nheads_k, 128);
}

// A model of layers of two kinds is a file for each: together they are all of its layers.
TEST(Models, LayersOfTwoKindsAddUp) {
  for (const auto& [name, layers] : {std::pair{"gemma-2-9b", 42}, {"gpt-oss-20b", 24}, {"gpt-oss-120b", 36}})
    EXPECT_EQ(load_model(name).num_layers + load_model(name + std::string("-window")).num_layers, layers) << name;
}

TEST(Models, RefusalsNameTheField) {
  EXPECT_THROW(load_model("gpt-9"), InvalidInput);
  EXPECT_THROW(problem_of(load_model("bert-base"), -1), InvalidInput);
  const auto field_of = [](const char* text) -> std::string {
    try {
      model_from_json_text(text, "m.json");
    } catch (const InvalidInput& error) {
      return error.field();
    }
    return "";
  };
  EXPECT_EQ(field_of("{"), "model");
  EXPECT_EQ(field_of(R"({"schema": "attest/model/2"})"), "schema");
  EXPECT_EQ(field_of(R"({"schema": "attest/model/1"})"), "name");
  EXPECT_EQ(field_of(R"({"schema": "attest/model/1", "heads": 3})"), "heads");
  const char* heads = R"({"schema": "attest/model/1", "name": "a", "description": "b", "source": "c", "num_layers": 1,
    "nheads": 5, "nheads_k": 2, "headdim": 64, "dtype": "bf16", "causal": "none", "window_left": -1, "max_seqlen": 9})";
  EXPECT_EQ(field_of(heads), "nheads");
  std::string text = heads;
  text.replace(text.find("\"nheads\": 5"), 11, "\"nheads\": 4");
  EXPECT_EQ(field_of(text.c_str()), "");
  const auto with = [&](const char* field) {
    return text.substr(0, text.find("\"dtype\"")) + field + text.substr(text.find("\"dtype\""));
  };
  EXPECT_EQ(field_of(with(R"("softcap": 0, )").c_str()), "softcap");
  EXPECT_EQ(field_of(with(R"("sink": 1, )").c_str()), "sink");
  EXPECT_EQ(field_of(with(R"("headdim_v": 300, )").c_str()), "headdim_v");
}

}  // namespace
}  // namespace attest
