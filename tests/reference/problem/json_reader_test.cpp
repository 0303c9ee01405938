#include "attest/problem/json_reader.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(JsonReader, ANumberThatFloat64TakesFor0IsFound) {
  const auto found = [](std::string_view json) {
    const auto tiny = tiny_number(json);
    return tiny ? tiny->name + "=" + tiny->number : "";
  };
  EXPECT_EQ(found(R"({"a": 1, "b": [2, -0.003e-330]})"), "b=-0.003e-330");
  EXPECT_EQ(found("1e-324"), "=1e-324");
  EXPECT_EQ(found("4.9e-324"), "") << "the least of float64";
  EXPECT_EQ(found(R"({"a": 0e-400, "b": -0.0})"), "");
  EXPECT_EQ(found(R"({"1e-400": "1e-400", "b\"": "\\", "c": "\"1e-400"})"), "");
}

}  // namespace
}  // namespace attest
