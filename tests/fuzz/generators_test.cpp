#include "attest/fuzz/generators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "attest/fuzz/census.h"

namespace attest {
namespace {

constexpr std::uint64_t num_cases = 100'000;

const std::vector<Case>& many_cases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> all;
    for (std::uint64_t k = 0; k < num_cases; ++k) all.push_back(generate_case(7, k));
    return all;
  }();
  return cases;
}

TEST(Generators, EveryCaseIsValidAndWithinItsBudget) {
  const Budget budget;
  for (const Case& c : many_cases()) {
    ASSERT_NO_THROW(validate(c)) << command_line(c);
    ASSERT_LE(work_of(c.problem), budget.max_work) << command_line(c);
    ASSERT_LE(std::max(c.problem.seqlen_q, c.problem.seqlen_k), budget.max_seqlen) << command_line(c);
  }
}

// The reference's tensors have room for the longest sequence in every batch entry.
TEST(Generators, NoTensorIsLarge) {
  constexpr std::int64_t most = 1 << 22;
  for (const Case& c : many_cases()) {
    const Problem& p = c.problem;
    const std::int64_t dim = std::max(p.headdim, p.headdim_v);
    ASSERT_LE(p.batch * p.seqlen_q * p.nheads * dim, most) << command_line(c);
    ASSERT_LE(p.batch * p.seqlen_k * p.nheads_k * dim, most) << command_line(c);
    if (p.bias != Bias::none) {
      ASSERT_LE(p.batch * p.nheads * p.seqlen_q * p.seqlen_k, most) << command_line(c);
    }
  }
}

TEST(Generators, ASmallBudgetIsKept) {
  const Budget tiny{1, 1000, 20};
  for (std::uint64_t k = 0; k < 5000; ++k) {
    const Case c = generate_case(1, k, tiny);
    ASSERT_LE(work_of(c.problem), 1000) << command_line(c);
    if (c.problem.seqlen_q > 0 && c.problem.seqlen_k > 0) {
      ASSERT_LE(std::max(c.problem.seqlen_q, c.problem.seqlen_k), 20) << command_line(c);
    }
  }
}

TEST(Generators, ACaseDependsOnSeedAndNumberAlone) {
  std::vector<std::uint64_t> order(2000);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  for (const std::uint64_t k : order) ASSERT_EQ(generate_case(7, k), many_cases()[k]) << k;
}

TEST(Generators, ThreadsDrawTheSameCases) {
  std::vector<int> different(4);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([t, &different] {
        for (std::uint64_t k = 0; k < 2000; ++k)
          different[static_cast<std::size_t>(t)] += !(generate_case(7, k) == many_cases()[k]);
      });
    many_cases();
  }
  EXPECT_EQ(different, std::vector<int>(4));
}

TEST(Generators, SeedsAndNumbersGiveDifferentCases) {
  std::set<std::string> lines;
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    for (std::uint64_t k = 0; k < 1000; ++k) lines.insert(command_line(generate_case(seed, k)));
  EXPECT_GT(lines.size(), 2990u);
}

// Pinned: whoever changes what is generated sees this fail and raises generator_version.
TEST(Generators, TheFirstCasesOfThisVersion) {
  EXPECT_EQ(generator_version, 2u);
  std::uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (std::uint64_t k = 0; k < 1000; ++k)
    for (const char c : command_line(generate_case(0, k)))
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  EXPECT_EQ(hash, 16233594406309871961u);
}

TEST(Generators, EverySpecialValueComesUp) {
  std::map<std::string, std::int64_t> seen;
  for (const Case& c : many_cases()) {
    const Problem& p = c.problem;
    for (const auto& [name, value] : std::initializer_list<std::pair<const char*, std::int64_t>>{
             {"seqlen_q", p.seqlen_q},
             {"seqlen_k", p.seqlen_k},
             {"headdim", p.headdim},
             {"headdim_v", p.headdim_v},
             {"group", p.nheads / p.nheads_k},
             {"nheads_k", p.nheads_k},
             {"batch", p.batch},
             {"residue", p.seqlen_k > 128 ? p.seqlen_k % 128 : -1},
             {"left", p.window_left},
             {"right", p.window_right},
             {"row_gap", c.layout.row_gap},
             {"seq_gap", c.layout.seq_gap},
             {"base_offset", c.layout.base_offset},
             {"prefix", p.prefix},
             {"softcap*10", static_cast<std::int64_t>(p.softcap * 10)},
             {"page_size", c.layout.page_size},
             {"num_splits", c.num_splits}})
      ++seen[name + std::to_string(value)];
    std::int64_t end = 0;
    for (const std::int64_t length : p.documents) {
      end += length;
      ++seen["boundary" + std::to_string(end)];
    }
    for (std::int64_t b = 0; b < std::ssize(p.varlen_q); ++b)
      ++seen["entry" + std::to_string(p.varlen_q[static_cast<std::size_t>(b)])];
  }
  const auto expect_all = [&](const std::string& name, std::initializer_list<std::int64_t> values) {
    for (const std::int64_t value : values) EXPECT_GE(seen[name + std::to_string(value)], 20) << name << ' ' << value;
  };
  for (const char* length : {"seqlen_q", "seqlen_k"})
    expect_all(length, {0, 1, 2, 3, 5, 63, 64, 65, 127, 128, 129, 192, 255, 256, 257, 448, 1025, 4090});
  expect_all("residue", {0, 1, 63, 64, 65, 127});
  expect_all("headdim", {1, 8, 16, 32, 40, 64, 72, 96, 100, 128, 192, 256});
  expect_all("headdim_v", {1, 8, 16, 32, 40, 64, 72, 96, 100, 128, 192, 256});
  expect_all("group", {1, 2, 3, 5, 7, 8});
  expect_all("nheads_k", {1, 2, 3, 4, 5, 8});
  expect_all("batch", {1, 2, 3, 4, 5, 7});
  for (const char* side : {"left", "right"})
    expect_all(side, {-1, 0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, std::int64_t{1} << 30});
  expect_all("row_gap", {0, 1, 8});
  expect_all("seq_gap", {0, 1, 64});
  expect_all("base_offset", {0, 1, 7, 8});
  expect_all("prefix", {0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129});
  expect_all("softcap*10", {0, 1, 10, 50, 300, 500});
  expect_all("page_size", {0, 1, 7, 16, 32, 64});
  expect_all("num_splits", {1, 2, 3, 8, 17});
  expect_all("boundary", {15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129});
  expect_all("entry", {0, 1, 2, 3, 5, 63, 64, 65, 127, 128, 129});
}

TEST(Generators, RelationsThatMatterComeUp) {
  std::map<std::string, int> seen;
  for (const Case& c : many_cases()) {
    const Problem& p = c.problem;
    seen["decode"] += p.seqlen_q == 1 && p.seqlen_k > 128;
    seen["queries more than a tile above keys"] += p.seqlen_k > 0 && p.seqlen_q > p.seqlen_k + 128;
    seen["below by no multiple of a tile"] +=
        p.seqlen_q > 1 && p.seqlen_q < p.seqlen_k && (p.seqlen_k - p.seqlen_q) % 64 != 0;
    seen["equal"] += p.seqlen_q == p.seqlen_k && p.seqlen_q > 1;
    seen["nothing at all"] += p.seqlen_q == 0 && p.seqlen_k == 0;
    seen["rows without a key"] += p.causal == Causal::bottom_right && p.seqlen_q > p.seqlen_k;
    seen["window beyond the length"] += p.window_left >= p.seqlen_k && p.seqlen_k > 0;
    seen["group other than nheads_k"] +=
        p.nheads_k > 1 && p.nheads / p.nheads_k > 1 && p.nheads / p.nheads_k != p.nheads_k;
    seen["scale 0"] += p.softmax_scale == 0.0;
    seen["negative scale"] += p.softmax_scale.value_or(1) < 0;
    seen["large inputs with a tail"] += c.inputs == Distribution::large && p.seqlen_k % 16 != 0;
    const auto empty = [](const std::vector<std::int64_t>& lengths, std::size_t b) {
      return b < lengths.size() && lengths[b] == 0;
    };
    seen["the first sequence is empty"] += empty(p.varlen_q, 0) || empty(p.varlen_k, 0);
    seen["the last sequence is empty"] +=
        p.batch > 1 && (empty(p.varlen_q, p.varlen_q.size() - 1) || empty(p.varlen_k, p.varlen_k.size() - 1));
    seen["seqused_k of none"] += std::count(p.seqused_k.begin(), p.seqused_k.end(), 0) > 0;
    seen["varlen queries over keys in pages"] += !p.varlen_q.empty() && c.layout.page_size > 0;
    seen["varlen, pages and splits"] += !p.varlen_q.empty() && c.layout.page_size > 0 && c.num_splits > 1;
    seen["softcap with a bias"] += p.softcap != 0 && p.bias != Bias::none;
    seen["a document of one position"] += std::count(p.documents.begin(), p.documents.end(), 1) > 0;
    seen["8-bit inputs of long sequences"] += is_fp8(p.dtype) && p.seqlen_k > 128;
    seen["no page to spare"] += c.layout.num_pages > 0 && c.layout.page_table.empty();
  }
  for (const auto& [relation, count] : seen) EXPECT_GE(count, 150) << relation;
}

TEST(Generators, FeaturesAreNeitherRareNorEverywhere) {
  Census census;
  for (const Case& c : many_cases()) census.add(c);
  for (const Feature& feature : features()) {
    EXPECT_GT(census.count(feature.name), num_cases / 250) << feature.name;
    EXPECT_LT(census.count(feature.name), num_cases * 92 / 100) << feature.name;
  }
  std::cout << census.to_string();
}

// Of what a problem may have beside shape and mask, any two meet.
TEST(Generators, FeaturesMeetInPairs) {
  const std::vector<std::string> names = {
      "fp8_e4m3", "causal bottom-right", "window",       "prefix",   "documents", "softcap",   "ALiBi",
      "sink",     "bias bhqk",           "GQA or MQA",   "varlen_q", "varlen_k",  "seqused_k", "pages",
      "splits",   "inputs large",        "another order"};
  std::vector<const Feature*> chosen;
  for (const Feature& feature : features())
    if (std::find(names.begin(), names.end(), feature.name) != names.end()) chosen.push_back(&feature);
  ASSERT_EQ(chosen.size(), names.size());
  std::map<std::pair<std::size_t, std::size_t>, int> met;
  for (const Case& c : many_cases()) {
    std::vector<std::size_t> has;
    for (std::size_t i = 0; i < chosen.size(); ++i)
      if (chosen[i]->has(c)) has.push_back(i);
    for (std::size_t i = 0; i < has.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) ++met[{has[j], has[i]}];
  }
  for (std::size_t i = 0; i < chosen.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const bool contradict = chosen[j]->name == "varlen_k" && chosen[i]->name == "pages";
      if (contradict)
        EXPECT_EQ((met[{j, i}]), 0);
      else
        EXPECT_GT((met[{j, i}]), num_cases / 1000) << chosen[j]->name << " with " << chosen[i]->name;
    }
}

TEST(Census, MergingIsAddingTogether) {
  Census all, even, odd;
  for (std::uint64_t k = 0; k < 1000; ++k) {
    const Case c = generate_case(3, k);
    all.add(c);
    (k % 2 == 0 ? even : odd).add(c);
  }
  even.merge(odd);
  EXPECT_EQ(even.to_json(), all.to_json());
  EXPECT_EQ(all.to_json()["cases"], 1000);
}

}  // namespace
}  // namespace attest
