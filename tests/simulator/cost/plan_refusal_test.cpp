// Plans that are refused: by the field at fault, its value and the limit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "attest/plan/catalog.h"
#include "attest/simulator/report.h"
#include "plan_texts.h"

namespace attest {
namespace {

/// A number as a message shows it.
std::string shown(double value) { return fmt::format("{}", value); }

struct Refused {
  Json fields;
  std::string field, value, limit;
};

void expect_refused(const Refused& r) {
  const auto [field, message] = refusal(plan_with(r.fields).dump());
  EXPECT_EQ(field, r.field) << r.fields.dump() << ": " << message;
  for (const std::string& part : {r.field + ": " + r.value, r.limit, std::string("my.json")})
    EXPECT_NE(message.find(part), std::string::npos) << r.fields.dump() << ": " << message;
  EXPECT_EQ(message.find_first_of("\n{}"), std::string::npos) << message;
}

// Each field of the table on both sides of its limits, and as what it is not.
TEST(PlanRefusal, EachFieldIsRefusedBeyondItsLimitsAndAsAnotherType) {
  for (const PlanField& field : plan_fields()) {
    const std::string name(field.name);
    const Json value = plan_value(KernelPlan{}, field);
    if (value.is_number()) {
      const std::string limit = "is outside " + shown(field.low) + " to " + shown(field.high);
      for (const double beyond : {field.low - 1, field.high + 1})
        expect_refused({{{name, static_cast<std::int64_t>(beyond)}}, name, shown(beyond), limit});
      expect_refused({{{name, "many"}}, name, "\"many\"", "must be a number"});
      expect_refused({{{name, field.low + 0.5}}, name, shown(field.low + 0.5), "must be a whole number"});
    } else if (value.is_boolean()) {
      expect_refused({{{name, 1}}, name, "1", "must be true or false"});
    } else {
      for (const std::string_view word : plan_words(field))
        expect_refused({{{name, "no_such_word"}}, name, "\"no_such_word\"", std::string(word)});
      expect_refused({{{name, 1}}, name, "1", "must be one of"});
    }
  }
}

// What fields forbid each other: the one at fault is named, with its value and what the other has.
TEST(PlanRefusal, WhatFieldsForbidEachOtherIsRefusedByTheOneAtFault) {
  const Json tma = {{"copy_kind", "tma"}, {"producer_warps", 1}};
  const auto and_tma = [&](Json fields) {
    fields.update(tma);
    return fields;
  };
  const auto of_8_bits = [](Json fields) {
    fields.update(Json{{"element_bytes", 1}});
    return fields;
  };
  const auto hopper = [&](Json fields) {
    Json all = and_tma({{"matrix_kind", "wgmma"}});
    all.update(fields);
    return all;
  };
  const Refused all[] = {
      {{{"tile_m", 72}}, "tile_m", "72", "no multiple of 16"},
      {{{"num_warps", 3}}, "num_warps", "3", "does not divide tile_m = 64 into multiples of 16 rows"},
      {{{"tile_m", 80}}, "num_warps", "4", "does not divide tile_m = 80 into multiples of 16 rows"},
      {{{"copy_kind", "tma"}}, "producer_warps", "0", "below 1, which copy_kind = tma needs"},
      {{{"producer_warps", 1}}, "producer_warps", "1", "above 0, where copy_kind = cp_async is not tma"},
      {{{"matrix_kind", "wgmma"}}, "matrix_kind", "wgmma", "needs copy_kind = tma, not cp_async"},
      {hopper({{"num_warps", 2}}), "num_warps", "2", "no multiple of 4"},
      {hopper({{"tile_m", 128}}), "tile_m", "128", "16 rows for each of num_warps = 4"},
      {{{"overlap", "between_warpgroups"}}, "overlap", "between_warpgroups", "needs matrix_kind = wgmma, not mma_sync"},
      {and_tma({{"overlap", "between_warpgroups"}}), "overlap", "between_warpgroups", "wgmma, not mma_sync"},
      {hopper({{"overlap", "between_warpgroups"}}), "overlap", "between_warpgroups",
       "needs num_warps >= 8, two warpgroups, not 4"},
      {{{"p_in_smem", true}}, "p_in_smem", "true", "needs matrix_kind = wgmma, not mma_sync"},
      {{{"cluster", 2}}, "cluster", "2", "above 1, where copy_kind = cp_async is not tma"},
      {and_tma({{"pad_chunks", 1}}), "pad_chunks", "1", "above 0, where copy_kind = tma"},
      {{{"tile_n", 72}}, "tile_n", "72", "no multiple of 16"},
      {of_8_bits({{"tile_n", 48}}), "tile_n", "48", "no multiple of 32"},
      {{{"merged_wait", true}}, "merged_wait", "true", "needs stages >= 2, not 1"},
      {{{"padded_headdim", 112}}, "padded_headdim", "112", "below headdim = 128"},
      {{{"padded_headdim", 136}}, "padded_headdim", "136", "no multiple of 16"},
      {of_8_bits({{"padded_headdim", 144}}), "padded_headdim", "144", "no multiple of 32"},
      {{{"padded_headdim_v", 112}}, "padded_headdim_v", "112", "below headdim_v = 128"},
      {{{"padded_headdim_v", 136}}, "padded_headdim_v", "136", "no multiple of 16"},
      {{{"copy_bytes_q", 1}}, "copy_bytes_q", "1", "below element_bytes = 2"},
      {{{"copy_bytes_k", 1}}, "copy_bytes_k", "1", "below element_bytes = 2"},
      {{{"copy_bytes_v", 1}}, "copy_bytes_v", "1", "below element_bytes = 2"},
      {{{"copy_bytes_o", 1}}, "copy_bytes_o", "1", "below the bytes of an output"},
      {{{"copy_bytes_q", 3}}, "copy_bytes_q", "3", "none of 1, 2, 4, 8, 16"},
      {{{"copy_columns", 4}}, "copy_columns", "4", "none of 0, 16, 32, 64, 128, 256"},
      {{{"copy_columns", 48}}, "copy_columns", "48", "none of 0, 16, 32, 64, 128, 256"},
      {{{"copy_bytes_k", 5}}, "copy_bytes_k", "5", "none of 1, 2, 4, 8, 16"},
      {{{"copy_bytes_v", 6}}, "copy_bytes_v", "6", "none of 1, 2, 4, 8, 16"},
      {{{"copy_bytes_o", 7}}, "copy_bytes_o", "7", "none of 1, 2, 4, 8, 16"},
      {{{"headdim", 127}, {"copy_bytes_q", 16}}, "copy_bytes_q", "16", "wider than the 2 that the case's strides"},
      {{{"headdim_v", 127}, {"copy_bytes_v", 16}}, "copy_bytes_v", "16", "wider than the 2 that the case's strides"},
      {{{"element_bytes", 3}}, "element_bytes", "3", "none of 1, 2, 4"},
      {{{"spill_words_per_key_tile", 4}}, "spill_words_per_key_tile", "4", "needs known_registers"},
      {{{"spill_words_per_cta", 4}}, "spill_words_per_cta", "4", "needs known_registers"},
      {{{"spill_words_at_start", 4}}, "spill_words_at_start", "4", "needs known_registers"},
      {{{"producer_spill_sectors", 4}}, "producer_spill_sectors", "4", "needs known_registers"},
      {{{"spill_words_at_start", 4}, {"known_registers", 200}}, "spill_words_at_start", "4", "other than none"},
      {{{"producer_spill_sectors", 4}, {"known_registers", 200}},
       "producer_spill_sectors",
       "4",
       "needs producer_warps"},
      {{{"spill_words_entering", 4}}, "spill_words_entering", "4", "more than spill_words_per_cta = 0"},
      {{{"known_registers", 256}}, "known_registers", "256", "registers_per_thread_max = 255 of h200"},
      {{{"known_registers", 1}}, "known_registers", "1", "neither 0, which estimates them, nor at least 16"},
      {{{"known_registers", 15}}, "known_registers", "15", "nor at least 16"},
      {{{"tile_m", 256}, {"tile_n", 512}, {"num_warps", 8}, {"stages", 2}},
       "tile_m",
       "256",
       "with tile_n 512 and stages 2 takes 589824 bytes of shared memory, more than smem_bytes_per_cta_max = 232448"},
  };
  for (const Refused& r : all) expect_refused(r);
}

TEST(PlanRefusal, WhatCannotBeIsRefusedWithFieldValueLimitAndFile) {
  const Refused all[] = {
      {{{"tile_k", 64}}, "tile_k", "unknown field", "remove it"},
      {{{"softcap", true}}, "softcap", "unknown field", "remove it"},
      {{{"tile_m", nullptr}}, "tile_m", "null", "must be a number"},
      {{{"tile_m", 0}}, "tile_m", "0", "outside 16 to 512"},
      {{{"tile_m", -64}}, "tile_m", "-64", "outside 16 to 512"},
      {{{"tile_m", 1e300}}, "tile_m", "1e+300", "outside 16 to 512"},
      {{{"base", "fa9"}}, "base", "'fa9'", "is none of attest, fa2"},
      {{{"base", 2}}, "base", "2", "must be a string"},
      {{{"name", ""}}, "name", "\"\"", "must not be empty"},
      {{{"name", "a\x1b[31m"}}, "name", "\"a\\u001b[31m\"", "must be without control characters"},
      {{{"description", "a\u009b31m"}}, "description", "\"a\\xc2\\x9b31m\"", "must be without control characters"},
      {{{"schema", "attest/plan/2"}}, "schema", "'attest/plan/2'", "is not attest/plan/1"},
      {{{"schema", 1}}, "schema", "1", "must be a string"},
      {{{"schema", "attest/predict/1"}}, "schema", "'attest/predict/1'", "is not attest/plan/1"},
      {{{"schema", "attest/predict/1"}, {"plan", 3}}, "plan", "3", "must be an object"},
  };
  for (const Refused& r : all) expect_refused(r);
  EXPECT_EQ(refusal("{}").first, "schema");
  EXPECT_EQ(refusal("[]").first, "plan");
  EXPECT_EQ(refusal("").first, "plan");
  EXPECT_EQ(refusal(R"({"schema": "attest/plan/1", "tile_m": 64, "tile_m": 128})").first, "tile_m");
  EXPECT_EQ(refusal(R"({"schema": "attest/plan/1", "tile_m": 1e999})").first, "tile_m");
  EXPECT_EQ(plan_from_json_text(R"({"schema": "attest/plan/1"})", "x/a\x1b[31m.json", Case{}, load_device("h200")).name,
            "a\\x1b[31m");
  const Json hopper = {{"matrix_kind", "wgmma"}, {"copy_kind", "tma"}, {"producer_warps", 4}};
  EXPECT_EQ(refusal(plan_with(hopper).dump()).first, "") << refusal(plan_with(hopper).dump()).second;
  EXPECT_EQ(refusal(plan_with(hopper).dump(), "a100").first, "matrix_kind");
}

TEST(PlanRefusal, WhatOneDeviceLacksIsRefusedThere) {
  DeviceSpec device = load_device("h200");
  const auto refused = [&](const Json& fields) {
    EXPECT_THROW((void)plan_from_json_text(plan_with(fields).dump(), "my.json", d128(), device), InvalidInput)
        << fields;
  };
  const Json cluster = {{"cluster", 4}, {"copy_kind", "tma"}, {"producer_warps", 4}};
  EXPECT_EQ(refusal(plan_with(cluster).dump()).first, "");
  device.num_sms = 3;
  refused(cluster);
  const DescribedPlan taken = read(plan_with(cluster));
  EXPECT_THROW((void)simulate(d128(), taken.plan, device, taken.name), InvalidInput);
  EXPECT_EQ(refusal(plan_with({{"known_registers", 255}}).dump()).first, "");
  EXPECT_EQ(refusal(plan_with({{"known_registers", 256}}).dump()).first, "known_registers");
  EXPECT_EQ(refusal(plan_with({{"copy_bytes_v", 3}}).dump()).first, "copy_bytes_v");
}

TEST(PlanRefusal, ANamedPlanTakesNoMoreRegistersThanTheDeviceHas) {
  DeviceSpec device = load_device("h200");
  const int known = load_plan("fa3", d128(), device).plan.known_registers;
  device.registers_per_thread_max = known;
  EXPECT_NO_THROW((void)load_plan("fa3", d128(), device));
  device.registers_per_thread_max = known - 1;
  try {
    (void)load_plan("fa3", d128(), device);
    FAIL() << known;
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(),
                 "known_registers: 168 is more than registers_per_thread_max = 167 of h200 (in plan fa3)");
  }
}

TEST(PlanRefusal, CopiesWiderThanTheLayoutAllowsAreRefused) {
  Case c = d128();
  c.layout.base_offset = 4;
  try {
    (void)read(plan_with({{"copy_bytes_k", 16}}), c);
    FAIL() << "8 bytes are the widest";
  } catch (const InvalidInput& error) {
    EXPECT_EQ(error.field(), "copy_bytes_k");
  }
  EXPECT_EQ(read(plan_with({{"copy_bytes_k", 4}}), c).plan.copy_bytes_k, 4);
}

// A reader of files from outside may refuse whatever it wants, but by InvalidInput alone.
TEST(PlanRefusal, MutatedTextNeverCrashes) {
  const DeviceSpec device = load_device("h200");
  const std::string good = to_json(DescribedPlan{"fa2", plan_named("fa2", d128(), device)}).dump();
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::string_view snippets[] = {"-", "1e99", "null", "{", "}", "[", "\"", ",", "\\u0000", "\xff", "0", "true"};
  int refused = 0;
  constexpr int rounds = 4000;
  for (int round = 0; round < rounds; ++round) {
    std::string text = good;
    for (std::size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + below(20));
          break;
        case 2:
          text.insert(at, snippets[below(std::size(snippets))]);
          break;
        default:
          text.resize(at + 1);
      }
    }
    try {
      const DescribedPlan plan = plan_from_json_text(text, "my.json", d128(), device);
      EXPECT_EQ(plan.plan.invalid(), nullptr) << text;
    } catch (const InvalidInput&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, rounds / 2);
  EXPECT_LT(refused, rounds);
}

}  // namespace
}  // namespace attest
