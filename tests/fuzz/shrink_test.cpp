#include "attest/fuzz/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "attest/fuzz/generators.h"
#include "naive_kernel.h"

namespace attest {
namespace {

// What a case is worth: every candidate must be worth less in some field and none may come round again.
TEST(SimplerCases, AreValidDifferentAndEnd) {
  for (std::uint64_t k = 0; k < 300; ++k) {
    Case c = generate_case(5, k);
    for (int steps = 0;; ++steps) {
      ASSERT_LT(steps, 400) << command_line(c);
      const std::vector<Case> simpler = simpler_cases(c);
      for (const Case& candidate : simpler) {
        ASSERT_NO_THROW(validate(candidate)) << command_line(c) << " -> " << command_line(candidate);
        ASSERT_FALSE(candidate == c);
      }
      if (simpler.empty()) break;
      c = simpler[static_cast<std::size_t>((k + static_cast<std::uint64_t>(steps)) % simpler.size())];
    }
    EXPECT_EQ(c.layout, Layout{});
    EXPECT_EQ(c.inputs, Distribution::normal);
    EXPECT_EQ(c.problem.seqlen_q, 0);
    EXPECT_EQ(c.problem.nheads, 1);
    EXPECT_EQ(c.problem.headdim, 1);
    EXPECT_EQ(c.seed, 0u);
    EXPECT_EQ(c.num_splits, 1);
    EXPECT_FALSE(c.backward || c.deterministic);
    const Problem simplest{1, 1, 1, 0, 0, 1, 1, c.problem.dtype, {}};
    EXPECT_EQ(c.problem, simplest) << command_line(c);
  }
}

// Every field can be dropped by itself.
TEST(SimplerCases, DropEachFeatureAlone) {
  Case c;
  Problem& p = c.problem;
  p.batch = 3;
  p.varlen_q = {4, 0, 40};
  p.seqlen_q = 40;
  p.seqlen_k = 70;
  p.seqused_k = {70, 3, 0};
  p.causal = Causal::bottom_right;
  p.prefix = 3;
  p.documents = {30, 0, 39, 1};
  p.softcap = 30;
  p.alibi = p.sink = true;
  p.bias = Bias::hqk;
  c.layout.page_size = 16;
  c.layout.page_table = {{4, 2, 3, 0, 1}, {5}, {}};
  c.layout.num_pages = 7;
  c.num_splits = 3;
  c.backward = c.deterministic = true;
  validate(c);
  const std::vector<Case> simpler = simpler_cases(c);
  const auto some = [&](const char* what, auto holds) {
    EXPECT_TRUE(std::any_of(simpler.begin(), simpler.end(), holds)) << what;
  };
  const auto without = [&](auto change) {
    Case expected = c;
    change(expected);
    return [expected](const Case& s) { return s == expected; };
  };
  some("prefix", without([](Case& s) { s.problem.prefix = 0; }));
  some("documents", without([](Case& s) { s.problem.documents.clear(); }));
  some("an empty document", without([](Case& s) { s.problem.documents = {30, 39, 1}; }));
  some("two documents merged", without([](Case& s) { s.problem.documents = {30, 0, 40}; }));
  some("one boundary", without([](Case& s) { s.problem.documents = {30, 40}; }));
  some("softcap", without([](Case& s) { s.problem.softcap = 0; }));
  some("softcap 1", without([](Case& s) { s.problem.softcap = 1; }));
  some("alibi", without([](Case& s) { s.problem.alibi = false; }));
  some("sink", without([](Case& s) { s.problem.sink = false; }));
  some("bias", without([](Case& s) { s.problem.bias = Bias::none; }));
  some("bias 11qk", without([](Case& s) { s.problem.bias = Bias::qk; }));
  some("varlen_q", without([](Case& s) { s.problem.varlen_q.clear(); }));
  some("a batch entry", without([](Case& s) {
         s.problem.batch = 2;
         s.problem.varlen_q = {4, 40};
         s.problem.seqused_k = {70, 0};
         s.layout.page_table = {{4, 2, 3, 0, 1}, {}};
       }));
  some("half of a length", without([](Case& s) {
         s.problem.varlen_q[2] = 20;
         s.problem.seqlen_q = 20;
       }));
  some("a page table", without([](Case& s) { s.layout.page_table.clear(); }));
  some("pages", without([](Case& s) {
         s.layout.page_size = s.layout.num_pages = 0;
         s.layout.page_table.clear();
       }));
  some("splits", without([](Case& s) { s.num_splits = 1; }));
  some("backward", without([](Case& s) { s.backward = s.deterministic = false; }));
  some("deterministic", without([](Case& s) { s.deterministic = false; }));
  some("fewer keys, documents cut with them", [&](const Case& s) {
    return s.problem.seqlen_k == 35 && s.problem.documents == std::vector<std::int64_t>{30, 0, 10} &&
           s.problem.seqused_k == std::vector<std::int64_t>{35, 3, 0};
  });
}

TEST(Shrink, GoesToTheEdgeOfAFault) {
  // Fails from 101 keys on, whatever the rest.
  NaiveKernel kernel(Fault::throws);
  ForwardBuffers buffers;
  Case c;
  c.problem = {3, 6, 2, 40, 260, 24, 17, Dtype::bf16, 0.5, Causal::top_left, 70, 3};
  c.layout = {Layout::Order::bhsd, 3, 2, 1};
  c.inputs = Distribution::shift;
  c.seed = 99;
  const Property& reference = property_named("reference");
  Trial trial(kernel, buffers, c);
  const Shrunk shrunk = shrink(kernel, buffers, reference, c, judge(reference, trial));
  EXPECT_TRUE(shrunk.finished);
  EXPECT_EQ(shrunk.verdict.status, Status::crashed);
  Case smallest;
  smallest.problem = {1, 1, 1, 0, 101, 1, 1, Dtype::bf16, {}, Causal::none, -1, -1};
  EXPECT_EQ(shrunk.minimal, smallest) << command_line(shrunk.minimal);
}

TEST(Shrink, KeepsTheStatusItStartedWith) {
  NaiveKernel kernel(Fault::last_row_unwritten);
  ForwardBuffers buffers;
  Case c = generate_case(5, 3);
  c.problem.seqlen_q = 9;
  c.problem.seqlen_k = 70;
  const Property& reference = property_named("reference");
  Trial trial(kernel, buffers, c);
  const Verdict failure = judge(reference, trial);
  ASSERT_EQ(failure.status, Status::unwritten);
  const Shrunk shrunk = shrink(kernel, buffers, reference, c, failure);
  EXPECT_EQ(shrunk.verdict.status, Status::unwritten);
  EXPECT_EQ(shrunk.minimal.problem.seqlen_q, 1);
  EXPECT_EQ(shrunk.minimal.problem.seqlen_k, 0);
}

TEST(Shrink, TheSameTwice) {
  NaiveKernel kernel(Fault::window_left_short);
  ForwardBuffers buffers;
  Case c;
  c.problem = {2, 2, 1, 150, 150, 16, 16, Dtype::fp16, {}, Causal::bottom_right, 31, -1};
  const Property& property = property_named("one_hot_v");
  Trial trial(kernel, buffers, c);
  const Verdict failure = judge(property, trial);
  ASSERT_EQ(failure.status, Status::wrong_values);
  const Shrunk one = shrink(kernel, buffers, property, c, failure), two = shrink(kernel, buffers, property, c, failure);
  EXPECT_EQ(one.minimal, two.minimal);
  EXPECT_EQ(one.runs, two.runs);
  EXPECT_LE(one.minimal.problem.seqlen_q * one.minimal.problem.seqlen_k, 4) << command_line(one.minimal);
}

TEST(Shrink, CapsHold) {
  NaiveKernel kernel(Fault::throws);
  ForwardBuffers buffers;
  Case c;
  c.problem = {1, 1, 1, 60, 260, 24, 17, Dtype::bf16, {}, Causal::none, -1, -1};
  const Property& reference = property_named("reference");
  Trial trial(kernel, buffers, c);
  const Verdict failure = judge(reference, trial);
  const Shrunk few = shrink(kernel, buffers, reference, c, failure, {3, 60});
  EXPECT_EQ(few.runs, 3);
  EXPECT_FALSE(few.finished);
  EXPECT_EQ(few.verdict.status, Status::crashed);
  const Shrunk none = shrink(kernel, buffers, reference, c, failure, {1000, 0});
  EXPECT_EQ(none.runs, 0);
  EXPECT_EQ(none.minimal, c);
}

}  // namespace
}  // namespace attest
