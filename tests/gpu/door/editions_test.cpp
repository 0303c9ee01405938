// The C++ adapter in a host of another edition of kernel_api.h: fields that an older host has not are 0 to the kernel,
// and nothing is written beyond what either side knows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "attest/gpu/kernel_adapter.h"

namespace attest {
namespace {

constexpr unsigned char guard = 0xA5;

/// A host's struct as its edition of the header has it: `bytes` bytes, and `guard` in all that the host does not have
/// or that this header does not know.
template <class Struct>
class Theirs {
 public:
  Theirs(const Struct& filled, std::size_t bytes) : bytes_(bytes), room_(sizeof(Struct) + 64, guard) {
    std::memcpy(room_.data(), &filled, std::min(bytes, sizeof filled));
    const auto size = static_cast<std::uint32_t>(bytes);
    std::memcpy(room_.data(), &size, sizeof size);
  }
  Struct* get() { return reinterpret_cast<Struct*>(room_.data()); }
  bool beyond_is_untouched() const {
    const std::size_t known = std::min(bytes_, sizeof(Struct));
    return std::all_of(room_.begin() + static_cast<std::ptrdiff_t>(known), room_.end(),
                       [](unsigned char byte) { return byte == guard; });
  }

 private:
  std::size_t bytes_;
  std::vector<unsigned char> room_;
};

struct Seen {
  attest_problem problem{};
  attest_forward forward{};
  attest_backward backward{};
};

class Watching : public plugin::Kernel {
 public:
  explicit Watching(Seen& seen) : seen_(seen) {}
  std::optional<std::string> unsupported(const attest_problem& problem) override {
    seen_.problem = problem;
    return std::nullopt;
  }
  void numerics(const attest_problem& problem, attest_numerics& numerics) override {
    seen_.problem = problem;
    EXPECT_EQ(numerics.struct_size, sizeof numerics);
    numerics.chain += 1;
    numerics.normalises_first = 1;
  }
  std::int64_t workspace_bytes(const attest_problem& problem, attest_pass /*pass*/) override {
    return static_cast<std::int64_t>(problem.seed) + 1;
  }
  void forward(const attest_problem& problem, const attest_forward& args) override {
    seen_.problem = problem;
    seen_.forward = args;
  }
  void backward(const attest_problem& problem, const attest_backward& args) override {
    seen_.problem = problem;
    seen_.backward = args;
    seen_.forward = *args.forward;
  }
  std::string plan(const attest_problem& problem) override { return problem.seed == 0 ? "old" : "new"; }

 private:
  Seen& seen_;
};

/// By how many bytes a host's edition is longer than this header; negative: shorter, by the last fields.
class Editions : public testing::TestWithParam<int> {
 protected:
  Editions() {
    forward_.workspace_bytes = 5;
    forward_.host = this;
    backward_.dsink = sink_;
    backward_.dq.sizes[0] = 3;
    numerics_.chain = 4;
  }
  template <class Struct>
  static std::size_t bytes_of() {
    return static_cast<std::size_t>(static_cast<int>(sizeof(Struct)) + GetParam());
  }
  static attest_problem a_problem() {
    attest_problem problem{};
    problem.seqlen_k = 7;
    problem.seed = 99;
    return problem;
  }
  static bool older() { return GetParam() < 0; }
  void expect_problem() const {
    EXPECT_EQ(seen_.problem.struct_size, sizeof(attest_problem));
    EXPECT_EQ(seen_.problem.seqlen_k, 7);
    EXPECT_EQ(seen_.problem.seed, older() ? 0 : 99U);
  }
  void expect_forward() const {
    EXPECT_EQ(seen_.forward.struct_size, sizeof(attest_forward));
    EXPECT_EQ(seen_.forward.workspace_bytes, 5);
    EXPECT_EQ(seen_.forward.host, older() ? nullptr : this);
  }

  attest_forward forward_{};
  attest_backward backward_{};
  attest_numerics numerics_{};
  float sink_[1]{};
  Seen seen_;
  std::unique_ptr<plugin::Kernel> kernel_ = std::make_unique<Watching>(seen_);
  const attest_kernel_api table_ = plugin::table_of(nullptr, nullptr);
  Theirs<attest_problem> problem_of_host_{a_problem(), bytes_of<attest_problem>()};
};
INSTANTIATE_TEST_SUITE_P(Adapter, Editions, testing::Values(-8, 0, 24), [](const auto& host) {
  return host.param < 0 ? "OlderHost" : host.param == 0 ? "SameHost" : "NewerHost";
});

TEST_P(Editions, AProblemIsReadByTheSmallerSize) {
  char words[16] = "";
  attest_text text{words, sizeof words};
  EXPECT_EQ(table_.supports(kernel_.get(), problem_of_host_.get(), &text), ATTEST_OK);
  expect_problem();
  std::int64_t bytes = 0;
  EXPECT_EQ(table_.workspace(kernel_.get(), problem_of_host_.get(), ATTEST_PASS_FORWARD, &bytes, &text), ATTEST_OK);
  EXPECT_EQ(bytes, older() ? 1 : 100);
  EXPECT_EQ(table_.plan(kernel_.get(), problem_of_host_.get(), &text), ATTEST_OK);
  EXPECT_STREQ(words, older() ? "old" : "new");
  EXPECT_TRUE(problem_of_host_.beyond_is_untouched());
}

TEST_P(Editions, NumericsAreWrittenByTheSmallerSize) {
  Theirs<attest_numerics> of_host(numerics_, bytes_of<attest_numerics>());
  char words[16] = "";
  attest_text text{words, sizeof words};
  EXPECT_EQ(table_.numerics(kernel_.get(), problem_of_host_.get(), of_host.get(), &text), ATTEST_OK);
  EXPECT_EQ(of_host.get()->struct_size, bytes_of<attest_numerics>()) << "the host's own";
  EXPECT_EQ(of_host.get()->chain, 5);
  EXPECT_TRUE(older() || of_host.get()->normalises_first == 1);
  EXPECT_TRUE(of_host.beyond_is_untouched());
  expect_problem();
}

TEST_P(Editions, ArgumentsAreReadByTheSmallerSize) {
  Theirs<attest_forward> forward(forward_, bytes_of<attest_forward>());
  char words[16] = "";
  attest_text text{words, sizeof words};
  EXPECT_EQ(table_.forward(kernel_.get(), problem_of_host_.get(), forward.get(), &text), ATTEST_OK);
  expect_problem();
  expect_forward();

  seen_ = {};
  backward_.forward = forward.get();
  Theirs<attest_backward> backward(backward_, bytes_of<attest_backward>());
  EXPECT_EQ(table_.backward(kernel_.get(), problem_of_host_.get(), backward.get(), &text), ATTEST_OK);
  expect_problem();
  expect_forward();
  EXPECT_EQ(seen_.backward.dq.sizes[0], 3);
  EXPECT_EQ(seen_.backward.dsink, older() ? nullptr : sink_);
}

}  // namespace
}  // namespace attest
