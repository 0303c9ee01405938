// A kernel of one's own by the C++ adapter, with an option, put to the test by
//
//     g++ -std=c++17 -O2 -fPIC -shared -I PREFIX/include cpu_plugin.cpp -o libcpu_plugin.so
//     attest doctor --kernel ./libcpu_plugin.so
//     attest fuzz --kernel ./libcpu_plugin.so:tile=32 --time 10s
//
// The online softmax of FlashAttention, tile by tile, on bf16 inputs; P is rounded to bf16 before P V.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "attest/gpu/kernel_adapter.h"

namespace {

using attest::plugin::row;

constexpr float infinity = std::numeric_limits<float>::infinity();

float from_bf16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// To nearest, ties to even; a NaN stays one.
std::uint16_t to_bf16(float value) {
  if (std::isnan(value)) return 0x7FC0;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

class Tiled : public attest::plugin::Kernel {
 public:
  static attest_capability capability() {
    attest_capability record = attest::plugin::plain_capability("tiled-cpp", 1U << ATTEST_BF16);
    record.description = "online softmax over tiles of keys, in C++";
    record.features = ATTEST_FEATURE_GQA | ATTEST_FEATURE_VALUE_DIM;
    record.causal = 1U << ATTEST_CAUSAL_BOTTOM_RIGHT;
    record.bitwise |= ATTEST_BITWISE_BATCH | ATTEST_BITWISE_GQA | ATTEST_BITWISE_LAYOUT;
    record.isolates_values = 1;
    return record;
  }

  explicit Tiled(const char* options) {
    const std::string text = options;
    if (text.empty()) return;
    if (text.rfind("tile=", 0) == 0) tile_ = std::strtoll(options + 5, nullptr, 10);
    if (tile_ < 1 || text.rfind("tile=", 0) != 0)
      throw attest::plugin::InvalidOption("kernel: '" + text + "' is not tile=N with N of 1 and more");
  }

  std::optional<std::string> unsupported(const attest_problem& p) override {
    if (p.seqlen_q > 4096) return "seqlen_q: " + std::to_string(p.seqlen_q) + " is above 4096";
    return std::nullopt;
  }

  void numerics(const attest_problem& /*problem*/, attest_numerics& n) override {
    n.smallest_tile = tile_;
    n.chain = 1;
  }

  void forward(const attest_problem& p, const attest_forward& args) override {
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t h = 0; h < p.nheads; ++h)
        for (std::int64_t i = 0; i < p.seqlen_q; ++i) attend(p, args, b, h, i);
  }

  std::string plan(const attest_problem& /*problem*/) override {
    return R"({"schema": "attest/plan/1", "name": "tiled-cpp", "base": "fa2"})";
  }

 private:
  void attend(const attest_problem& p, const attest_forward& args, std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t h_k = h / (p.nheads / p.nheads_k);
    const std::int64_t keys = p.causal == ATTEST_CAUSAL_NONE
                                  ? p.seqlen_k
                                  : std::clamp<std::int64_t>(i + 1 + p.seqlen_k - p.seqlen_q, 0, p.seqlen_k);
    const auto* const q = row<std::uint16_t>(args.q, b, i, h);
    std::vector<float> o(static_cast<std::size_t>(p.headdim_v)), scores;
    float max = -infinity, sum = 0;
    for (std::int64_t first = 0; first < keys; first += tile_) {
      const std::int64_t last = std::min(keys, first + tile_);
      scores.clear();
      float larger = max;
      for (std::int64_t j = first; j < last; ++j) {
        const auto* const k = row<std::uint16_t>(args.k, b, j, h_k);
        float dot = 0;
        for (std::int64_t d = 0; d < p.headdim; ++d) dot += from_bf16(q[d]) * from_bf16(k[d]);
        scores.push_back(dot * static_cast<float>(p.softmax_scale));
        if (!(scores.back() <= larger)) larger = scores.back();
      }
      const float rescale = max == -infinity ? 0 : std::exp(max - larger), base = larger == -infinity ? 0 : larger;
      max = larger;
      sum *= rescale;
      for (float& x : o) x *= rescale;
      for (std::int64_t j = first; j < last; ++j) {
        const float weight = std::exp(scores[static_cast<std::size_t>(j - first)] - base);
        const float rounded = from_bf16(to_bf16(weight));
        const auto* const v = row<std::uint16_t>(args.v, b, j, h_k);
        for (std::size_t d = 0; d < o.size(); ++d) o[d] += rounded * from_bf16(v[d]);
        sum += weight;
      }
    }
    auto* const out = row<std::uint16_t>(args.o, b, i, h);
    for (std::size_t d = 0; d < o.size(); ++d) out[d] = to_bf16(sum == 0 ? 0 : o[d] / sum);
    *row<float>(args.lse, b, h, i) = sum == 0 ? -infinity : max + std::log(sum);
  }

  std::int64_t tile_ = 64;
};

}  // namespace

ATTEST_KERNEL(Tiled)
