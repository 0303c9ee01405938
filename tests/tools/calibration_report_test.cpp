// What attest calibrate prints and writes of a calibration, without a GPU.
#include "calibration_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attest/simulator/calibration.h"

namespace attest::tools {
namespace {

using testing::HasSubstr, testing::Not;

/// Of a GPU whose SMs were counted and whose L2 is a tenth slower than an H200's.
Calibration some_calibration() {
  const DeviceSpec h200 = load_device("h200");
  Calibration calibration;
  calibration.device.name = "NVIDIA H200";
  calibration.device.num_sms = h200.num_sms;
  calibration.device.l2_bytes_per_second = 0.9 * h200.l2_bytes_per_second;
  calibration.device.origins = {{"num_sms", "asked of the driver: cudaDevAttrMultiProcessorCount"},
                                {"l2_bytes_per_second", "measured by attest calibrate: all SMs copy"}};
  calibration.missing = {"dram_efficiency: 1.5 came out, a device has 0.01 to 1"};
  return calibration;
}

TEST(CalibrationReport, TheDeviceHasWhatWasMeasuredAndMarksTheRest) {
  const CalibrationReport report = report_of(some_calibration(), load_device("h200"), "mine");
  EXPECT_EQ(report.json.at("nearest"), "h200");
  EXPECT_EQ(report.json.at("missing"), nlohmann::json({some_calibration().missing}).front());
  const auto& fields = report.json.at("device").at("fields");
  EXPECT_EQ(fields.at("l2_bytes_per_second").at("source"), "measured by attest calibrate: all SMs copy");
  EXPECT_FALSE(fields.at("num_sms").contains("estimated"));
  EXPECT_TRUE(fields.at("dram_efficiency").contains("estimated"));
  EXPECT_EQ(report.json.size(), 3u);
  // --device of other commands reads it
  const DeviceSpec read = device_from_json_text(report.json.at("device").dump(), "mine.json");
  EXPECT_EQ(read.name, "mine");
  EXPECT_EQ(read.l2_bytes_per_second, some_calibration().device.l2_bytes_per_second);
}

TEST(CalibrationReport, TheTextHasEachKnownFieldBesideTheNearestDevices) {
  const std::string text = report_of(some_calibration(), load_device("h200"), "mine").text;
  EXPECT_THAT(text, HasSubstr("NVIDIA H200; what is not measured is as h200 has it"));
  EXPECT_THAT(text, testing::ContainsRegex("l2_bytes_per_second .* 0\\.900  measured by attest calibrate"));
  EXPECT_THAT(text, HasSubstr("not measured: dram_efficiency: 1.5 came out"));
  const std::string rest = text.substr(text.find("as h200 has it: "));
  EXPECT_THAT(rest, HasSubstr(" dram_efficiency"));
  EXPECT_THAT(rest, Not(HasSubstr("num_sms")));
}

}  // namespace
}  // namespace attest::tools
