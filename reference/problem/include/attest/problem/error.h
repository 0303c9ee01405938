// What every part of attest throws at bad input: one line that names the field, the value and the limit.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace attest {

/// Input that a user can correct (exit 2). what() is one line: "<field>: <value> <why, with the limit>".
class InvalidInput : public std::invalid_argument {
 public:
  InvalidInput(std::string_view field, std::string_view value, std::string_view limit);
  const std::string& field() const { return field_; }

 private:
  std::string field_;
};

/// Something outside attest that is missing or refuses (exit 3): an unwritable file, no memory, no GPU.
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace attest
