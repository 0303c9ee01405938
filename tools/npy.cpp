#include "npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "attest/problem/error.h"
#include "attest/reference/rounding.h"
#include "parse.h"

namespace attest::tools {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they lie");

constexpr std::string_view magic = "\x93NUMPY";

// The header, a Python dict of exactly three keys, as numpy writes it:
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderReader {
 public:
  struct Header {
    std::string descr;
    bool fortran_order = false;
    std::vector<std::int64_t> shape;
  };

  HeaderReader(std::string_view text, std::string_view field, std::string_view file)
      : rest_(text), field_(field), file_(file) {}

  Header read() {
    Header header;
    std::optional<std::string> descr;
    std::optional<bool> fortran;
    std::optional<std::vector<std::int64_t>> shape;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !descr)
        descr = string();
      else if (key == "fortran_order" && !fortran)
        fortran = boolean();
      else if (key == "shape" && !shape)
        shape = tuple();
      else
        malformed();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!rest_.empty() || !descr || !fortran || !shape) malformed();
    return {*descr, *fortran, *shape};
  }

 private:
  [[noreturn]] void malformed() const { throw InvalidInput(field_, in_quotes(file_), "has a malformed .npy header"); }

  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t')) rest_.remove_prefix(1);
  }
  bool accept(char c) {
    skip_space();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) malformed();
  }
  std::string string() {
    const char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) malformed();
    std::string value(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return value;
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    malformed();
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (error != std::errc() || extent < 0) malformed();
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      extents.push_back(extent);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  std::string_view rest_, field_, file_;
};

template <class T>
T value_at(std::string_view bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

NpyArray parse_npy(std::string_view field, std::string_view file, std::string_view bytes) {
  const std::string name = in_quotes(file);
  const auto refuse = [&](const std::string& why) -> void { throw InvalidInput(field, name, why); };
  const auto byte = [&](std::size_t k) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[k])); };

  if (!bytes.starts_with(magic)) refuse("is not a .npy file");
  if (bytes.size() < 10) refuse(fmt::format("is truncated: {} bytes, fewer than a .npy header has", bytes.size()));
  const std::uint32_t version = byte(6);
  if (version < 1 || version > 3) refuse(fmt::format("has .npy version {}, outside 1 to 3", version));
  const std::size_t header_at = version == 1 ? 10 : 12;
  if (bytes.size() < header_at)
    refuse(fmt::format("is truncated: {} bytes, fewer than a .npy header has", bytes.size()));
  std::size_t header_size = byte(8) | byte(9) << 8;
  if (version > 1) header_size |= byte(10) << 16 | byte(11) << 24;
  if (header_size > bytes.size() - header_at)
    refuse(fmt::format("is truncated: its header of {} bytes ends past its {} bytes", header_size, bytes.size()));

  const auto header = HeaderReader(bytes.substr(header_at, header_size), field, file).read();
  if (header.descr.starts_with('>')) refuse(fmt::format("is big-endian ({}), not <f2, <f4 or <f8", header.descr));
  if (header.descr != "<f2" && header.descr != "<f4" && header.descr != "<f8")
    refuse(fmt::format("has dtype {}, not <f2, <f4 or <f8", in_quotes(header.descr)));
  if (header.fortran_order) refuse("is in Fortran order, not in C order");

  const auto size_of_value = static_cast<std::size_t>(header.descr[2] - '0');
  const std::string_view data = bytes.substr(header_at + header_size);
  std::size_t count = 1;
  bool too_many = false;
  for (const std::int64_t extent : header.shape)
    too_many |= __builtin_mul_overflow(count, static_cast<std::size_t>(extent), &count);
  // Compared by division: the product of the header's extents is not to be trusted, its size in bytes still less.
  if (too_many || data.size() % size_of_value != 0 || data.size() / size_of_value != count)
    refuse(fmt::format("has {} bytes of data, which is not shape ({}) of {}", data.size(),
                       fmt::join(header.shape, ", "), header.descr));

  NpyArray array{header.shape, std::vector<double>(count)};
  for (std::size_t k = 0; k < count; ++k) {
    if (size_of_value == 2)
      array.values[k] = decode(Dtype::fp16, value_at<std::uint16_t>(data, k));
    else if (size_of_value == 4)
      array.values[k] = value_at<float>(data, k);
    else
      array.values[k] = value_at<double>(data, k);
  }
  return array;
}

std::string npy_bytes(const std::vector<std::int64_t>& shape, const std::vector<double>& values) {
  std::string header = fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}{}), }}",
                                   fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  // The array starts at a multiple of 64 bytes, and the header ends with a newline.
  const std::size_t prefix = magic.size() + 4;
  header.append(63 - (prefix + header.size()) % 64, ' ');
  header += '\n';

  std::string bytes(magic);
  bytes += '\x01';
  bytes += '\x00';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  const std::size_t data_at = bytes.size();
  bytes.resize(data_at + values.size() * sizeof(double));
  if (!values.empty()) std::memcpy(bytes.data() + data_at, values.data(), values.size() * sizeof(double));
  return bytes;
}

}  // namespace attest::tools
