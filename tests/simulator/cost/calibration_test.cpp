#include "attest/simulator/calibration.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "attest/problem/error.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

TEST(Calibration, EveryDeviceIsWhatItsTextSays) {
  for (const std::string& name : device_names()) {
    SCOPED_TRACE(name);
    const DeviceSpec device = load_device(name);
    std::ifstream file(ATTEST_DEVICES "/" + name + ".json");
    EXPECT_EQ(nlohmann::json(to_json(device)), nlohmann::json::parse(file));  // in whatever order
  }
}

TEST(Calibration, TheNearestDeviceHasTheArchitectureThenTheSizeThenTheMemory) {
  constexpr std::int64_t gb = 1'000'000'000;
  EXPECT_EQ(nearest_device(80, 108, 85 * gb).name, "a100");
  EXPECT_EQ(nearest_device(89, 76, 16 * gb).name, "rtx4090");
  EXPECT_EQ(nearest_device(86, 84, 24 * gb).name, "rtx3090");
  EXPECT_EQ(nearest_device(100, 148, 180 * gb).name, "b200");
  EXPECT_EQ(nearest_device(90, 132, 85 * gb).name, "h100");
  EXPECT_EQ(nearest_device(90, 132, 150 * gb).name, "h200");
}

TEST(Calibration, WhatWasMeasuredIsASourceAndTheRestAnEstimate) {
  const DeviceSpec nearest = load_device("a100");
  const std::vector<CalibratedField> fields = {{"num_sms", 84.0, "asked"}, {"exp_per_clock", 15.5, "measured"}};
  const Json json = calibrated_device("mine", "A GPU", fields, nearest);
  const DeviceSpec device = device_from_json_text(json.dump(), "mine.json");
  EXPECT_EQ(device.name, "mine");
  EXPECT_EQ(device.num_sms, 84);
  EXPECT_TRUE(json["fields"]["num_sms"]["value"].is_number_integer());
  EXPECT_EQ(device.exp_per_clock, 15.5);
  EXPECT_EQ(device.l2_bytes, nearest.l2_bytes);
  for (const FieldOrigin& origin : device.origins) {
    const bool given = origin.field == "num_sms" || origin.field == "exp_per_clock";
    EXPECT_EQ(origin.estimated, !given) << origin.field;
    if (!given) {
      EXPECT_NE(origin.text.find("as a100 has it"), std::string::npos) << origin.text;
    }
  }
}

TEST(Calibration, WhatNoDeviceCanHaveIsRefusedByName) {
  const DeviceSpec nearest = load_device("a100");
  const auto field_refused = [&](const CalibratedField& field) -> std::string {
    try {
      calibrated_device("mine", "A GPU", std::vector{field}, nearest);
    } catch (const InvalidInput& error) {
      return error.field();
    }
    return "none";
  };
  EXPECT_EQ(field_refused({"num_sms", 0, "asked"}), "num_sms.value");
  EXPECT_EQ(field_refused({"colour", 1, "seen"}), "colour");
}

}  // namespace
}  // namespace attest
