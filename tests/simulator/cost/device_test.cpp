#include "attest/simulator/device.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "attest/problem/error.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

std::string h100_text() {
  std::ifstream in(ATTEST_MEASURED "/../devices/h100.json");
  return {std::istreambuf_iterator<char>(in), {}};
}

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
  ASSERT_EQ(device_names(), (std::vector<std::string>{"a100", "h100", "h200", "rtx4090"}));
  for (const std::string& name : device_names()) {
    const DeviceSpec device = load_device(name);
    EXPECT_EQ(device.name, name);
    EXPECT_EQ(device.origins.size(), 29u);
    for (const FieldOrigin& origin : device.origins) EXPECT_GE(origin.text.size(), 8u) << name << " " << origin.field;
  }
}

TEST(Device, H100AsPublished) {
  const DeviceSpec d = load_device("h100");
  EXPECT_EQ(d.num_sms, 132);
  EXPECT_EQ(d.l2_bytes, 50 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(d.dram_bytes_per_second, 3.35e12);
  EXPECT_TRUE(d.origin("l2_ways").estimated);
  EXPECT_FALSE(d.origin("num_sms").estimated);
}

TEST(Device, EveryFieldIsNeededAndChecked) {
  const Json good = Json::parse(h100_text());
  for (const auto& [field, entry] : good["fields"].items()) {
    Json json = good;
    json["fields"].erase(field);
    expect_refused(json.dump(), field, "missing", "must be given");
    json = good;
    json["fields"][field]["value"] = "many";
    expect_refused(json.dump(), field + ".value", "\"many\"", "must be a number");
    json["fields"][field]["value"] = -3;
    expect_refused(json.dump(), field + ".value", "-3", "is outside");
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
  json["schema"] = "attest/device/9";
  expect_refused(json.dump(), "schema", "attest/device/9", "is not");
  expect_refused("[]", "device", "[]", "must be an object");
  expect_refused("", "device", "0 bytes", "malformed or cut off");
  const std::string text = h100_text();
  for (const std::size_t length : {text.size() / 3, text.size() / 2, text.size() - 3})
    expect_refused(text.substr(0, length), "device", std::to_string(length), "malformed or cut off");
  std::string twice = text;
  twice.insert(twice.find("\"num_sms\""), "\"num_sms\": {\"value\": 1, \"source\": \"x\"}, ");
  expect_refused(twice, "num_sms", "given twice", "once");
}

TEST(Device, NamesAndFiles) {
  EXPECT_THROW(load_device("h300"), InvalidInput);
  EXPECT_THROW(load_device("./no-such-device.json"), InvalidInput);
  EXPECT_THROW(load_device("/"), InvalidInput);
  const std::string path = testing::TempDir() + "/copy.json";
  std::ofstream(path) << h100_text();
  EXPECT_EQ(load_device(path).num_sms, 132);
}

}  // namespace
}  // namespace attest
