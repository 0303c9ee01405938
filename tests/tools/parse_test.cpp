#include "parse.h"

#include <gtest/gtest.h>

#include "attest/problem/error.h"

namespace attest::tools {
namespace {

TEST(Parse, IntegersAtTheirLimits) {
  EXPECT_EQ(parse_integer("n", "5", 0, 5), 5);
  EXPECT_EQ(parse_integer("n", "-9223372036854775808", INT64_MIN, INT64_MAX), INT64_MIN);
  EXPECT_EQ(parse_integer("n", "9223372036854775807", INT64_MIN, INT64_MAX), INT64_MAX);
  EXPECT_THROW(parse_integer("n", "6", 0, 5), InvalidInput);
  EXPECT_THROW(parse_integer("n", "9223372036854775808", INT64_MIN, INT64_MAX), InvalidInput);
  for (const char* text : {"", " 5", "5 ", "+5", "0x5", "5.0", "5e0", "5k", "--5", "five", "5\n"})
    EXPECT_THROW(parse_integer("n", text, INT64_MIN, INT64_MAX), InvalidInput) << text;
  EXPECT_EQ(parse_unsigned("n", "18446744073709551615"), UINT64_MAX);
  EXPECT_THROW(parse_unsigned("n", "18446744073709551616"), InvalidInput);
  EXPECT_THROW(parse_unsigned("n", "-1"), InvalidInput);
}

TEST(Parse, NumbersAreFinite) {
  EXPECT_EQ(parse_number("x", "-0.125"), -0.125);
  EXPECT_EQ(parse_number("x", "1e-3"), 1e-3);
  for (const char* text : {"", "inf", "nan", "1e999", "1,5", "0.5x", " 1"})
    EXPECT_THROW(parse_number("x", text), InvalidInput) << text;
}

TEST(Parse, Times) {
  EXPECT_DOUBLE_EQ(parse_seconds("time", "500ms"), 0.5);
  EXPECT_DOUBLE_EQ(parse_seconds("time", "60s"), 60);
  EXPECT_DOUBLE_EQ(parse_seconds("time", "1.5m"), 90);
  EXPECT_DOUBLE_EQ(parse_seconds("time", "168h"), 168 * 3600);
  EXPECT_DOUBLE_EQ(parse_seconds("time", "7"), 7);
  for (const char* text : {"", "s", "0s", "-1s", "169h", "1d", "1 s", "nan", "infs", "1s1s"})
    EXPECT_THROW(parse_seconds("time", text), InvalidInput) << text;
}

TEST(Parse, PairsAndShards) {
  EXPECT_EQ(parse_pair("window", "-1,0"), std::pair(std::int64_t{-1}, std::int64_t{0}));
  for (const char* text : {"", "1", "1,", ",1", "1,2,3", "1, 2", "1;2"})
    EXPECT_THROW(parse_pair("window", text), InvalidInput) << text;
  EXPECT_EQ(parse_shard("shard", "3/4"), std::pair(std::int64_t{3}, std::int64_t{4}));
  for (const char* text : {"", "4/4", "-1/4", "0/0", "1", "1/2/3", "0/-1"})
    EXPECT_THROW(parse_shard("shard", text), InvalidInput) << text;
}

TEST(Parse, ErrorsFitOneLine) {
  try {
    parse_integer("batch", std::string("1\n2\x1b[31m") + std::string(500, '9'), 1, 4);
    FAIL();
  } catch (const InvalidInput& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find('\n'), std::string::npos);
    EXPECT_EQ(what.find('\x1b'), std::string::npos);
    EXPECT_LT(what.size(), 160u);
    EXPECT_EQ(error.field(), "batch");
  }
}

TEST(Parse, NearestName) {
  const std::vector<std::string> names = {"llama-3-8b", "llama-3-70b", "bert-base", "a"};
  EXPECT_EQ(nearest("lama-3-70b", names), "llama-3-70b");
  EXPECT_EQ(nearest("llama-3-80b", names), "llama-3-8b");
  EXPECT_EQ(nearest("bret-base", names), "bert-base");
  EXPECT_EQ(nearest("BERT-Bse", names), "bert-base");
  EXPECT_EQ(nearest("H200", std::vector<std::string>{"b200", "h200"}), "h200");
  EXPECT_EQ(nearest("gpt", names), "");
  EXPECT_EQ(nearest("b", names), "") << "one letter for another is no likeness";
  EXPECT_EQ(did_you_mean("bertbase", names), "; did you mean bert-base?");
}

}  // namespace
}  // namespace attest::tools
