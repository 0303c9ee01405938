// draw_torch_cases FOLDER COUNT SEED [non_finite]: draws small problems over every feature and writes them, their
// inputs and what the reference makes of them, for judge.py, or with NaN and Inf among the inputs for
// judge_non_finite.py.
//   FOLDER/cases.jsonl   one line a case: {"case": to_json(case), "tensors": {name: [first double, extents...]}}
//   FOLDER/tensors.f64   all tensors' values, float64 in the host's order
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "attest/problem/case.h"
#include "attest/reference/backward.h"
#include "feature_cases.h"

namespace attest {
namespace {

class Writer {
 public:
  explicit Writer(const std::filesystem::path& folder)
      : lines_(folder / "cases.jsonl"), values_(folder / "tensors.f64", std::ios::binary) {}

  void write(const FeatureCase& f, Distribution inputs) {
    nlohmann::ordered_json line;
    Case c;
    c.problem = f.problem;
    c.backward = true;
    c.inputs = inputs;
    line["case"] = to_json(c);
    nlohmann::ordered_json& tensors = line["tensors"];
    const Inputs& in = f.inputs;
    const Forward out = forward(f.problem, in);
    const Gradients gradients = backward(f.problem, in);
    const std::pair<const char*, const Tensor*> named[] = {{"q", &in.q},
                                                           {"k", &in.k},
                                                           {"v", &in.v},
                                                           {"dout", &in.dout},
                                                           {"bias", &in.bias},
                                                           {"alibi_slopes", &in.alibi_slopes},
                                                           {"sink", &in.sink},
                                                           {"q_descale", &in.q_descale},
                                                           {"k_descale", &in.k_descale},
                                                           {"v_descale", &in.v_descale},
                                                           {"o", &out.o},
                                                           {"lse", &out.lse},
                                                           {"dq", &gradients.dq},
                                                           {"dk", &gradients.dk},
                                                           {"dv", &gradients.dv},
                                                           {"dsink", &gradients.dsink},
                                                           {"dbias", &gradients.dbias}};
    for (const auto& [name, tensor] : named) {
      if (tensor->extents[0] == 0) continue;  // the problem has none; one of no rows is written
      const auto& e = tensor->extents;
      tensors[name] = {written_, e[0], e[1], e[2], e[3]};
      values_.write(reinterpret_cast<const char*>(tensor->values.data()),
                    static_cast<std::streamsize>(tensor->values.size() * sizeof(double)));
      written_ += tensor->values.size();
    }
    lines_ << line.dump() << "\n";
  }

  bool good() {
    lines_.flush();
    values_.flush();
    return lines_.good() && values_.good();
  }

 private:
  std::ofstream lines_, values_;
  std::size_t written_ = 0;
};

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  const bool non_finite = argc == 5 && std::string_view(argv[4]) == "non_finite";
  if (argc != 4 && !non_finite) {
    fmt::print(stderr, "usage: draw_torch_cases FOLDER COUNT SEED [non_finite]\n");
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  attest::Writer writer(argv[1]);
  std::mt19937_64 random(std::strtoull(argv[3], nullptr, 10));
  for (long n = std::atol(argv[2]); n > 0; --n)
    if (non_finite)
      writer.write(attest::draw_non_finite_case(random, 12), attest::Distribution::non_finite);
    else
      writer.write(attest::draw_feature_case(random, n % 8 == 0 ? 40 : 12), attest::Distribution::normal);
  return writer.good() ? 0 : 1;
}
