#include "attest/fuzz/properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "attest/fuzz/generators.h"
#include "attest/fuzz/kernels.h"
#include "attest/problem/error.h"
#include "naive_kernel.h"

namespace attest {
namespace {

Verdict run_property(std::string_view name, Kernel& kernel, const Case& c) {
  ForwardBuffers buffers;
  Trial trial(kernel, buffers, c);
  return judge(property_named(name), trial);
}

Case make_case(std::int64_t seqlen_q, std::int64_t seqlen_k, Causal causal = Causal::none, std::int64_t left = -1,
               std::int64_t right = -1) {
  Case c;
  c.problem = {2, 4, 2, seqlen_q, seqlen_k, 16, 16, Dtype::fp16, {}, causal, left, right};
  c.seed = 5;
  return c;
}

Case with_softcap(Case c) {
  c.problem.softcap = 1;
  return c;
}
Case with_alibi(Case c) {
  c.problem.alibi = true;
  c.seed = 4;  // even: the slopes as a bias
  return c;
}
Case with_sink(Case c) {
  c.problem.sink = true;
  return c;
}
Case with_bias(Case c) {
  c.problem.bias = Bias::bhqk;
  return c;
}
Case with_seed(Case c, std::uint64_t seed) {  // which rewriting is chosen hangs on it
  c.seed = seed;
  return c;
}
Case in_splits(Case c) {
  c.num_splits = 3;
  return c;
}
Case varlen_case() {
  Case c = make_case(9, 12, Causal::bottom_right);
  c.problem.varlen_q = {5, 9};
  c.problem.varlen_k = {12, 3};
  return c;
}
Case paged_case() {
  Case c = make_case(9, 20);
  c.layout.page_size = 16;
  return c;
}
Case seqused_case() {
  Case c = make_case(9, 20);
  c.problem.seqused_k = {20, 7};
  return c;
}
Case fp8_case() {
  Case c = make_case(9, 20);
  c.problem.dtype = Dtype::fp8_e4m3;
  return c;
}
Case prefix_case() {
  Case c = make_case(9, 20, Causal::bottom_right, 2);
  c.problem.prefix = 20;
  return c;
}
Case documents_case(std::int64_t seqlen_q, std::int64_t seqlen_k, std::vector<std::int64_t> documents) {
  Case c = make_case(seqlen_q, seqlen_k, Causal::bottom_right);
  c.problem.documents = std::move(documents);
  return c;
}
Case crossing_prefix_case() {
  Case c = documents_case(20, 20, {10, 10});
  c.problem.prefix = 3;
  return c;
}

TEST(Properties, NamesAreDistinctAndFound) {
  std::set<std::string_view> names;
  for (const Property& property : properties()) {
    EXPECT_TRUE(names.insert(property.name).second);
    EXPECT_EQ(&property_named(property.name), &property);
  }
  EXPECT_THROW(property_named("gqaa"), InvalidInput);
}

TEST(Properties, EachIsPutToItsShareOfCasesAndTheFirstTwoToAll) {
  std::map<std::string_view, int> applied, chosen;
  for (std::uint64_t k = 0; k < 4000; ++k) {
    const Case c = generate_case(0, k);
    for (const Property& property : properties()) applied[property.name] += property.applies(c);
    for (const Property* property : properties_for(0, k, c)) ++chosen[property->name];
  }
  for (const Property& property : properties()) {
    const double share = static_cast<double>(chosen[property.name]) / applied[property.name];
    const double expected = property.share / 64.0;
    const double deviation = std::sqrt(expected * (1 - expected) / applied[property.name]);
    EXPECT_NEAR(share, expected, 4 * deviation) << property.name;
    EXPECT_GT(chosen[property.name], 40) << property.name;
  }
  EXPECT_EQ(chosen["hazards"], 4000);
  EXPECT_EQ(chosen["reference"], 4000);
}

TEST(Properties, WhichAreChosenIsAFunctionOfSeedAndNumber) {
  const Case c = generate_case(3, 17);
  EXPECT_EQ(properties_for(3, 17, c), properties_for(3, 17, c));
  std::set<std::vector<const Property*>> choices;
  for (std::uint64_t k = 0; k < 64; ++k) choices.insert(properties_for(3, k, c));
  EXPECT_GT(choices.size(), 10u);
}

class EveryProperty : public testing::TestWithParam<const Property*> {};
INSTANTIATE_TEST_SUITE_P(Properties, EveryProperty, testing::ValuesIn([] {
                           std::vector<const Property*> all;
                           for (const Property& property : properties()) all.push_back(&property);
                           return all;
                         }()),
                         [](const auto& p) { return std::string(p.param->name); });

// Right kernels, with and without a declaration that relations hold bit for bit.
TEST_P(EveryProperty, AccusesNoRightKernel) {
  NaiveKernel bitwise, within_budget(Fault::none, false);
  const std::unique_ptr<Kernel> cpu = make_kernel("cpu");
  ForwardBuffers buffers;
  int applied = 0;
  for (Kernel* kernel : {static_cast<Kernel*>(&bitwise), static_cast<Kernel*>(&within_budget), cpu.get()})
    for (std::uint64_t k = 0; k < 300; ++k) {
      const Case c = generate_case(11, k, {64, 1 << 17, 2048});
      if (!GetParam()->applies(c) || kernel->unsupported(c)) continue;
      ++applied;
      Trial trial(*kernel, buffers, c);
      const Verdict verdict = judge(*GetParam(), trial);
      ASSERT_EQ(verdict.status, Status::passed)
          << GetParam()->name << " on " << kernel->capability().name << ": " << verdict.rule << " "
          << verdict.error_over_budget << " " << verdict.detail << "\n"
          << command_line(c);
    }
  EXPECT_GT(applied, 50);
}

// What each property is for, at an edge of it: the fault one key or one row wide, and the right kernel beside it.
struct Sight {
  const char* property;
  Fault fault;
  Case c;
};
const std::vector<Sight>& sights() {
  static const std::vector<Sight> all = [] {
    std::vector<Sight> sights = {
        {"hazards", Fault::hazard, make_case(3, 65)},
        {"reference", Fault::scale_one_percent, make_case(32, 128)},
        {"reference", Fault::last_row_unwritten, make_case(3, 65)},
        {"reference", Fault::one_row_too_many, make_case(3, 65)},
        {"zero_q", Fault::drops_one_key_of_many, make_case(1, 8000)},
        {"zero_q", Fault::reads_past_tail, make_case(2, 63)},
        {"zero_q", Fault::causal_one_more, make_case(40, 41, Causal::bottom_right)},
        {"zero_q", Fault::lse_base_2, make_case(1, 2)},
        {"zero_q", Fault::empty_row_lse_zero, make_case(4, 3, Causal::bottom_right)},
        {"one_v", Fault::value_columns_of_headdim, make_case(1, 3)},
        {"one_hot_v", Fault::window_left_short, make_case(70, 70, Causal::none, 5, -1)},
        {"one_hot_v", Fault::window_right_short, make_case(70, 70, Causal::top_left, -1, 0)},
        {"one_hot_v", Fault::drops_one_key_of_many, make_case(1, 300)},
        {"shift", Fault::no_max, make_case(8, 40)},
        {"shift", Fault::lse_without_max, make_case(8, 40)},
        {"gqa", Fault::head_modulo, make_case(2, 9)},
        {"batch", Fault::batch_stride_of_one, make_case(2, 9)},
        {"batch", Fault::swapped_batch_v, make_case(2, 9)},
        {"key_permutation", Fault::drops_last_key, make_case(2, 9)},
        {"layout", Fault::hard_coded_strides, make_case(2, 9)},
        {"packing", Fault::varlen_starts_shifted, make_case(2, 9)},
        {"reference", Fault::varlen_packed_lse_as_padded, varlen_case()},
        {"packing", Fault::pages_in_order, paged_case()},
        {"packing", Fault::last_page_partly_read, paged_case()},
        {"batch", Fault::varlen_starts_shifted, varlen_case()},
        {"batch", Fault::varlen_off_of_longest, varlen_case()},
        {"batch", Fault::alibi_of_first_member, with_alibi(make_case(9, 9))},
        {"batch", Fault::bias_of_first_member, with_bias(make_case(9, 9))},
        {"reference", Fault::descale_of_first_head, fp8_case()},
        {"rewriting", Fault::alibi_ignores_off, with_alibi(make_case(9, 12))},
        {"rewriting", Fault::alibi_one_sided, with_alibi(make_case(9, 12))},
        {"rewriting", Fault::prefix_ignored, prefix_case()},
        {"rewriting", Fault::empty_documents_merge, with_seed(documents_case(40, 40, {20, 20}), 3)},
        {"documents", Fault::documents_ignored, documents_case(40, 40, {20, 20})},
        {"documents", Fault::document_end_inclusive, documents_case(40, 40, {7, 13, 20})},
        {"one_hot_v", Fault::prefix_crosses_documents, crossing_prefix_case()},
        {"zero_q", Fault::prefix_one_short, prefix_case()},
        {"zero_q", Fault::seqused_ignored, seqused_case()},
        {"splits", Fault::split_forgets_last, make_case(9, 70)},
        {"splits", Fault::split_lse_of_first, make_case(9, 70)},
        {"zero_q", Fault::empty_split_not_guarded, in_splits(make_case(9, 3, Causal::bottom_right))},
        {"descale", Fault::v_descale_dropped, fp8_case()},
        {"descale", Fault::k_descale_twice, fp8_case()},
        {"repeat", Fault::stale_scale, make_case(9, 40)},
        {"repeat", Fault::alternates, make_case(9, 40)},
        {"reference", Fault::softcap_ignored, with_softcap(make_case(9, 40))},
        {"reference", Fault::softcap_before_scale, with_softcap(make_case(9, 40))},
        {"reference", Fault::softcap_after_bias, with_bias(with_softcap(make_case(9, 40)))},
        {"reference", Fault::bias_before_scale, with_bias(make_case(9, 40))},
        {"reference", Fault::bias_transposed_heads, with_bias(make_case(9, 40))},
        {"reference", Fault::sink_ignored, with_sink(make_case(9, 40))},
        {"reference", Fault::sink_in_every_tile, with_sink(make_case(9, 140))},
        {"reference", Fault::sink_not_in_lse, with_sink(make_case(9, 40))},
        {"weights", Fault::p_in_bf16, make_case(9, 40)},
        {"lookup", Fault::drops_one_key_of_many, make_case(40, 100, Causal::bottom_right)},
        {"lookup", Fault::scale_one_percent, make_case(3, 9)},
        {"mask", Fault::drops_one_key_of_many, make_case(1, 150)},
        {"mask", Fault::head_modulo, make_case(2, 9)},
        {"mask", Fault::reads_past_tail, make_case(2, 9)},
    };
    for (Sight& sight : sights)
      if (sight.fault == Fault::value_columns_of_headdim) sight.c.problem.headdim_v = 17;
    return sights;
  }();
  return all;
}

class EverySight : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Properties, EverySight, testing::Range(std::size_t{0}, sights().size()), [](const auto& p) {
  return std::string(sights()[p.param].property) + "_" + std::to_string(p.param);
});

TEST_P(EverySight, SeesItsFaultAndNothingInTheRightKernel) {
  const Sight& sight = sights()[GetParam()];
  for (const bool bitwise : {true, false}) {
    NaiveKernel right(Fault::none, bitwise), wrong(sight.fault, bitwise);
    EXPECT_EQ(run_property(sight.property, right, sight.c).status, Status::passed) << command_line(sight.c);
    const Verdict verdict = run_property(sight.property, wrong, sight.c);
    EXPECT_NE(verdict.status, Status::passed) << verdict.error_over_budget << " " << command_line(sight.c);
    EXPECT_GT(verdict.error_over_budget, 1);
  }
}

TEST(Properties, StatusesSayWhatHappened) {
  const auto status = [](std::string_view property, Fault fault, const Case& c) {
    NaiveKernel kernel(fault);
    return run_property(property, kernel, c).status;
  };
  EXPECT_EQ(status("reference", Fault::last_row_unwritten, make_case(3, 65)), Status::unwritten);
  EXPECT_EQ(status("reference", Fault::last_lse_unwritten, make_case(3, 65)), Status::unwritten);
  EXPECT_EQ(status("zero_q", Fault::last_lse_unwritten, make_case(3, 65)), Status::unwritten);
  EXPECT_EQ(status("one_v", Fault::flushes_neighbour, make_case(3, 65)), Status::out_of_bounds);
  EXPECT_EQ(status("gqa", Fault::clears_k_tail, make_case(3, 65)), Status::out_of_bounds);
  EXPECT_EQ(status("hazards", Fault::hazard, make_case(3, 65)), Status::hazard);
  EXPECT_EQ(status("zero_q", Fault::hazard, make_case(3, 65)), Status::hazard);
  EXPECT_EQ(status("reference", Fault::throws, make_case(3, 101)), Status::crashed);
  EXPECT_EQ(status("layout", Fault::throws, make_case(3, 101)), Status::crashed);
}

TEST(Properties, ALayoutRelationIsBitwiseOnlyWhereItIsDeclared) {
  const Case c = make_case(8, 40);
  NaiveKernel naive;
  EXPECT_THAT(run_property("layout", naive, c).rule, testing::HasSubstr("bit for bit"));
  EXPECT_THAT(run_property("key_permutation", naive, c).rule, testing::Not(testing::HasSubstr("bit for bit")));
}

// A kernel may declare another LSE for a row without keys; it is then held to that, and to nothing else.
TEST(Properties, TheDeclaredLseOfAnEmptyRowIsTheRightOne) {
  class Declares : public NaiveKernel {
   public:
    Declares(Fault fault, double lse) : NaiveKernel(fault), capability_(NaiveKernel::capability()) {
      capability_.lse_of_empty_row = lse;
    }
    const Capability& capability() const override { return capability_; }

   private:
    Capability capability_;
  };
  const Case c = make_case(4, 3, Causal::bottom_right);
  Declares zero(Fault::empty_row_lse_zero, 0), minus_infinity(Fault::none, 0);
  EXPECT_EQ(run_property("reference", zero, c).status, Status::passed);
  EXPECT_EQ(run_property("zero_q", zero, c).status, Status::passed);
  EXPECT_EQ(run_property("reference", minus_infinity, c).status, Status::wrong_values);
}

}  // namespace
}  // namespace attest
