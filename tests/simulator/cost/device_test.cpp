#include "attest/simulator/device.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "attest/problem/error.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const std::string& name) {
  std::ifstream in(ATTEST_MEASURED "/../devices/" + name + ".json");
  return {std::istreambuf_iterator<char>(in), {}};
}
std::string h100_text() { return text_of("h100"); }

/// The message that `text` is refused with, or "" if it is taken.
std::string refusal(const std::string& text, std::string& field) {
  try {
    device_from_json_text(text, "my.json");
  } catch (const InvalidInput& error) {
    field = error.field();
    return error.what();
  }
  return "";
}

void expect_refused(const std::string& text, const std::string& field, const std::string& value,
                    const std::string& limit) {
  std::string named;
  const std::string message = refusal(text, named);
  EXPECT_EQ(named, field) << message;
  for (const auto& part : {value, limit, std::string("my.json")})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(Device, AllThatTravelLoadAndNameTheSourceOfEveryField) {
  ASSERT_EQ(device_names(), (std::vector<std::string>{"a100", "ascend910b", "b200", "h100", "h200", "mtt-s4000",
                                                      "orin-agx", "rtx3090", "rtx4090"}));
  for (const std::string& name : device_names()) {
    const DeviceSpec device = load_device(name);
    EXPECT_EQ(device.name, name);
    EXPECT_EQ(device.kind == DeviceKind::cube_vector, name == "ascend910b");
    EXPECT_EQ(device.origins.size(), device.kind == DeviceKind::gpu ? 60u : 17u) << name;
    for (const FieldOrigin& origin : device.origins) EXPECT_GE(origin.text.size(), 8u) << name << " " << origin.field;
  }
}

TEST(Device, H100AsPublished) {
  const DeviceSpec d = load_device("h100");
  EXPECT_EQ(d.num_sms, 132);
  EXPECT_EQ(d.l2_bytes, 50 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(d.dram_bytes_per_second, 3.35e12);
  EXPECT_TRUE(d.origin("l2_latency_tail_cycles").estimated);
  EXPECT_FALSE(d.origin("l2_latency_cycles").estimated);
  EXPECT_FALSE(d.origin("num_sms").estimated);
}

TEST(Device, Ascend910bAsItsConfigurationSays) {
  const DeviceSpec d = load_device("ascend910b");
  EXPECT_EQ(d.num_cube_cores, 24);
  EXPECT_EQ(d.num_vector_cores, 48);
  EXPECT_EQ(d.unified_buffer_bytes, 192 << 10);
  EXPECT_EQ(d.scores_through_global_memory, 1);
  EXPECT_EQ(d.registers_per_sm, 0);
  // what both kinds' models read
  EXPECT_EQ(d.num_sms, 24);
  EXPECT_EQ(d.smem_bytes_per_cta_max, d.unified_buffer_bytes);
  EXPECT_DOUBLE_EQ(d.exp_per_clock, 2 * d.vector_exp_per_clock);
}

class EveryField : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(OfAKind, EveryField, testing::Values("h100", "ascend910b"));

TEST_P(EveryField, IsNeededAndChecked) {
  const Json good = Json::parse(text_of(GetParam()));
  for (const auto& [field, entry] : good["fields"].items()) {
    Json json = good;
    json["fields"].erase(field);
    expect_refused(json.dump(), field, "missing", "must be given");
    json = good;
    const bool list = entry["value"].is_array();
    json["fields"][field]["value"] = "many";
    expect_refused(json.dump(), field + ".value", "\"many\"",
                   list ? "must be a list of at least one number" : "must be a number");
    json["fields"][field]["value"] = list ? Json({-3}) : Json(-3);
    expect_refused(json.dump(), field + (list ? ".value[0]" : ".value"), "-3", "is outside");
    json["fields"][field]["value"] = list ? Json({1e300}) : Json(1e300);
    expect_refused(json.dump(), field + (list ? ".value[0]" : ".value"), "1e+300", "is outside");
    json["fields"][field].erase("value");
    expect_refused(json.dump(), field + ".value", "missing", "must be given");
    json = good;
    json["fields"][field].erase("source");
    json["fields"][field].erase("estimated");
    expect_refused(json.dump(), field, "neither source nor estimated", "exactly one");
  }
}

TEST(Device, UnknownMistypedContradictingOrTruncated) {
  const Json good = Json::parse(h100_text());
  Json json = good;
  json["fields"]["num_sm"] = json["fields"]["num_sms"];
  expect_refused(json.dump(), "num_sm", "unknown", "remove it");
  json = good;
  json["colour"] = "green";
  expect_refused(json.dump(), "colour", "unknown", "remove it");
  json = good;
  json["fields"]["num_sms"]["value"] = 131.5;
  expect_refused(json.dump(), "num_sms.value", "131.5", "whole number");
  json = good;
  json["fields"]["dram_bytes_per_second"]["value"] = 0;
  expect_refused(json.dump(), "dram_bytes_per_second.value", "0", "is outside");
  json = good;
  json["fields"]["smem_bytes_per_cta_max"]["value"] = 300000;
  expect_refused(json.dump(), "smem_bytes_per_cta_max", "300000", "smem_bytes_per_sm = 233472");
  json = good;
  json["name"] = "h100\x1b]0;x\x07";
  expect_refused(json.dump(), "name", "\"h100\\u001b]0;x\\u0007\"", "control characters");
  json = good;
  json["fields"]["num_sms"]["source"] = "a\x7f";
  expect_refused(json.dump(), "num_sms.source", "\"a\\x7f\"", "control characters");
  std::string beyond = h100_text();
  beyond.insert(beyond.find("132"), "1e999");
  expect_refused(beyond, "fields.num_sms.value", "its number", "beyond 1.8e308");
  json = good;
  json["schema"] = "attest/device/9";
  expect_refused(json.dump(), "schema", "attest/device/9", "is not");
  expect_refused("[]", "device", "[]", "must be an object");
  expect_refused("", "device", "0 bytes", "malformed or cut off");
  const std::string text = h100_text();
  for (const std::size_t length : {text.size() / 3, text.size() / 2, text.size() - 3})
    expect_refused(text.substr(0, length), "device", std::to_string(length), "malformed or cut off");
  std::string twice = text;
  twice.insert(twice.find("\"num_sms\""), "\"num_sms\": {\"value\": 1, \"source\": \"x\"}, ");
  expect_refused(twice, "fields.num_sms", "given twice", "once");
  twice = text;
  twice.insert(twice.find("132"), "1, \"value\": ");
  expect_refused(twice, "fields.num_sms.value", "given twice", "once");
}

TEST(Device, AKindTakesItsOwnFieldsOnly) {
  const Json gpu = Json::parse(h100_text()), cores = Json::parse(text_of("ascend910b"));
  Json json = gpu;
  json["fields"]["unified_buffer_bytes"] = cores["fields"]["unified_buffer_bytes"];
  expect_refused(json.dump(), "unified_buffer_bytes", "a field of kind cube_vector", "of the other kind");
  json = cores;
  json["fields"]["registers_per_sm"] = gpu["fields"]["registers_per_sm"];
  expect_refused(json.dump(), "registers_per_sm", "a field of kind gpu", "of the other kind");
  json = gpu;
  json["kind"] = "tpu";
  expect_refused(json.dump(), "kind", "'tpu'", "gpu, cube_vector");
  json["kind"] = 3;
  expect_refused(json.dump(), "kind", "3", "must be a string");
  json["kind"] = "gpu";
  std::string field;
  EXPECT_EQ(refusal(json.dump(), field), "");
}

TEST(Device, ImpossibleTogether) {
  const Json gpu = Json::parse(h100_text()), cores = Json::parse(text_of("ascend910b"));
  const auto with = [](Json json, const char* field, const Json& value) {
    json["fields"][field]["value"] = value;
    return json.dump();
  };
  expect_refused(with(cores, "num_vector_cores", 47), "num_vector_cores", "47", "multiple of num_cube_cores = 24");
  expect_refused(with(cores, "scores_through_global_memory", 2), "scores_through_global_memory.value", "2", "0 to 1");
  expect_refused(with(cores, "dram_bytes", 1 << 24), "l2_bytes", "201326592", "dram_bytes = 16777216");
  expect_refused(with(gpu, "dram_bytes", 1 << 24), "l2_bytes", "52428800", "dram_bytes = 16777216");
  expect_refused(with(gpu, "l2_slices_per_partition", 7), "l2_slices_per_partition", "7", "12800 sets");
  Json huge = Json::parse(with(gpu, "dram_bytes", std::int64_t{1} << 41));
  huge["fields"]["l2_slices_per_partition"]["value"] = 64;
  expect_refused(with(huge, "l2_bytes", std::int64_t{1} << 40), "l2_bytes", "1099511627776", "1048576");
  expect_refused(with(gpu, "l2_bytes", 52428800 + 2048), "l2_bytes", "52430848", "must be a multiple of 4096");
  expect_refused(with(gpu, "max_ctas_per_sm", 1024), "max_ctas_per_sm.value", "1024", "1 to 64");
  expect_refused(with(gpu, "max_warps_per_sm", 65), "max_warps_per_sm.value", "65", "1 to 64");
  expect_refused(with(gpu, "num_sms", 7), "gpc_sides", "8 GPCs", "num_sms = 7");
  expect_refused(with(gpu, "l2_partitions", 1), "gpc_sides", "1", "must be below l2_partitions = 1");
  expect_refused(with(gpu, "gpc_sides", Json({0, 1, 0, 1, 0, 1, 0, 0.5})), "gpc_sides", "0.5", "must be whole numbers");
  expect_refused(with(gpu, "gpc_clocks", Json({1, 1})), "gpc_clocks", "2 GPCs", "must be as many as gpc_sides, 8");
  expect_refused(with(gpu, "gpc_clocks", Json({1, 1, 1, 1, 1, 1, 1, 1.08})), "gpc_clocks", "an average of 1.01",
                 "must be 1, within 0.0001");
  expect_refused(with(gpu, "l2_dirty_ways", 17), "l2_dirty_ways", "17", "l2_ways = 16");
  expect_refused(with(gpu, "register_allocation_unit", 32768), "register_allocation_unit", "32768", "16384");
}

TEST(Device, NamesAndFiles) {
  EXPECT_THROW(load_device("h300"), InvalidInput);
  EXPECT_THROW(load_device("./no-such-device.json"), InvalidInput);
  EXPECT_THROW(load_device("/"), InvalidInput);
  const std::string path = testing::TempDir() + "/copy.json";
  std::ofstream(path) << h100_text();
  EXPECT_EQ(load_device(path).num_sms, 132);
}

TEST(Device, ScaledStaysWithinWhatItsFieldCanBe) {
  const DeviceSpec h100 = load_device("h100");
  EXPECT_EQ(device_scaled(h100, "sm_clock_hz", 2)->sm_clock_hz, 2 * h100.sm_clock_hz);
  EXPECT_EQ(device_scaled(h100, "l2_dirty_ways", 0.5)->l2_dirty_ways, 3);  // of 7
  EXPECT_EQ(device_scaled(h100, "dram_efficiency", 2)->dram_efficiency, 1);
  const double slow = 1 / 1.5, fast = 2 / 1.5;  // twice the others, and over their mean
  EXPECT_EQ(device_scaled(load_device("b200"), "gpc_clocks", 2)->gpc_clocks,
            (std::vector<double>{slow, fast, slow, fast, slow, fast, slow, fast}));
  EXPECT_EQ(device_scaled(h100, "gpc_sides", 0.5)->gpc_sides, (std::vector<double>{0, 0, 1, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(device_scaled(h100, "gpc_sides", 2));                              // there is no third side
  EXPECT_FALSE(device_scaled(load_device("a100"), "wgmma_latency_cycles", 0.5));  // 0
  try {
    device_scaled(h100, "l2_partitions", 0.5);
    ADD_FAILURE() << "GPCs lie on the side of a partition that is not there";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), "gpc_sides: 1 must be below l2_partitions = 1 (in h100)");
  }
  const DeviceSpec cores = *device_scaled(load_device("ascend910b"), "vector_exp_per_clock", 2);
  EXPECT_EQ(cores.exp_per_clock, 2 * load_device("ascend910b").exp_per_clock);
}

}  // namespace
}  // namespace attest
