#include "npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "attest/problem/error.h"

namespace attest::tools {
namespace {

// A file as numpy.lib.format describes it, made apart from npy_bytes().
std::string npy(const std::string& dict, const std::string& data, char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  const std::size_t size = dict.size();
  for (int k = 0; k < (version == 1 ? 2 : 4); ++k) bytes += static_cast<char>(size >> 8 * k & 0xff);
  return bytes + dict + data;
}

template <class T>
std::string bytes_of_values(std::initializer_list<T> values) {
  std::string bytes;
  for (const T value : values) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes.append(raw, sizeof(T));
  }
  return bytes;
}

const std::string f4_2x2 = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
const std::string four_floats = bytes_of_values<float>({1, -2, 0.5F, 1e30F});

std::string refusal(const std::string& bytes) {
  try {
    parse_npy("q", "q.npy", bytes);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(Npy, ReadsTheThreeFloats) {
  const NpyArray f4 = parse_npy("q", "q.npy", npy(f4_2x2, four_floats));
  EXPECT_EQ(f4.shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(f4.values, (std::vector<double>{1, -2, 0.5, static_cast<double>(1e30F)}));

  const NpyArray f8 = parse_npy("q", "q.npy",
                                npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n",
                                    bytes_of_values<double>({0.1, -0.0, std::numeric_limits<double>::infinity()})));
  EXPECT_EQ(f8.shape, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(f8.values, (std::vector<double>{0.1, 0.0, std::numeric_limits<double>::infinity()}));

  // 1, the smallest subnormal, -65504, NaN
  const NpyArray f2 = parse_npy("q", "q.npy",
                                npy("{'descr': '<f2', 'fortran_order': False, 'shape': (1, 4), }",
                                    bytes_of_values<std::uint16_t>({0x3c00, 0x0001, 0xfbff, 0x7e00})));
  EXPECT_EQ(f2.values[0], 1);
  EXPECT_EQ(f2.values[1], 0x1p-24);
  EXPECT_EQ(f2.values[2], -65504);
  EXPECT_TRUE(std::isnan(f2.values[3]));
}

TEST(Npy, ReadsLaterVersionsEmptyArraysAndAnyKeyOrder) {
  EXPECT_EQ(parse_npy("q", "q.npy", npy(f4_2x2, four_floats, 2)).values[1], -2);
  EXPECT_EQ(parse_npy("q", "q.npy", npy(f4_2x2, four_floats, 3)).values[1], -2);
  const auto empty = parse_npy("q", "q.npy", npy("{'shape': (2, 0, 3), 'fortran_order': False, 'descr': '<f8'}", ""));
  EXPECT_EQ(empty.shape, (std::vector<std::int64_t>{2, 0, 3}));
  EXPECT_TRUE(empty.values.empty());
  EXPECT_EQ(parse_npy("q", "q.npy",
                      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", bytes_of_values<float>({7})))
                .values,
            std::vector<double>{7});
}

TEST(Npy, WritesWhatItReads) {
  const std::vector<double> values = {1, 2, 3, 4, 5, -std::numeric_limits<double>::infinity()};
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{6}, {2, 3}, {1, 2, 3, 1}}) {
    const std::string bytes = npy_bytes(shape, values);
    EXPECT_EQ((bytes.size() - values.size() * sizeof(double)) % 64, 0u);
    const NpyArray array = parse_npy("q", "q.npy", bytes);
    EXPECT_EQ(array.shape, shape);
    EXPECT_EQ(array.values, values);
  }
}

TEST(Npy, RefusesByName) {
  const auto with = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  };
  const std::string good = npy(f4_2x2, four_floats);
  EXPECT_EQ(refusal(good), "");
  EXPECT_EQ(refusal(npy(with(">f4", "False", "(2, 2)"), four_floats)),
            "q: 'q.npy' is big-endian (>f4), not <f2, <f4 or <f8");
  EXPECT_EQ(refusal(npy(with("<f4", "True", "(2, 2)"), four_floats)), "q: 'q.npy' is in Fortran order, not in C order");
  for (const char* descr : {"<i4", "|V2", "<c8", "|u1", "<f16"})
    EXPECT_EQ(refusal(npy(with(descr, "False", "(2, 2)"), four_floats)),
              std::string("q: 'q.npy' has dtype '") + descr + "', not <f2, <f4 or <f8");
  EXPECT_EQ(refusal(good + "x"), "q: 'q.npy' has 17 bytes of data, which is not shape (2, 2) of <f4");
  EXPECT_EQ(refusal(good.substr(0, good.size() - 4)),
            "q: 'q.npy' has 12 bytes of data, which is not shape (2, 2) of <f4");
  EXPECT_EQ(refusal(npy(with("<f4", "False", "(4294967296, 4294967296)"), "")),
            "q: 'q.npy' has 0 bytes of data, which is not shape (4294967296, 4294967296) of <f4");
  EXPECT_EQ(refusal(""), "q: 'q.npy' is not a .npy file");
  EXPECT_EQ(refusal("PK\x03\x04 an npz archive"), "q: 'q.npy' is not a .npy file");
  EXPECT_EQ(refusal(npy(f4_2x2, four_floats, 4)), "q: 'q.npy' has .npy version 4, outside 1 to 3");
  for (const char* dict : {"", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 2)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -2)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99999999999999999999)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)} x",
                           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}"})
    EXPECT_EQ(refusal(npy(dict, four_floats)), "q: 'q.npy' has a malformed .npy header") << dict;
}

// Every prefix of a good file is refused, and nothing reads past its end (the sanitised build would say).
TEST(Npy, RefusesEveryTruncation) {
  for (const char version : {char{1}, char{2}}) {
    const std::string good = npy(f4_2x2, four_floats, version);
    for (std::size_t size = 0; size < good.size(); ++size)
      EXPECT_NE(refusal(std::string(good.data(), size)), "") << size << " bytes";
  }
}

}  // namespace
}  // namespace attest::tools
