// Text that comes in pieces, line by line.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace attest {

class Lines {
 public:
  static constexpr std::size_t most_bytes = 1 << 20;  // of a line; those of listings and logs have hundreds

  /// `take` gets each line, without the LF that ends it, as soon as it is whole.
  explicit Lines(std::function<void(std::string_view)> take) : take_(std::move(take)) {}
  /// Throws std::length_error where a line has more than most_bytes; of no line is more kept.
  void add(std::string_view piece);
  /// Nothing comes behind: what has been begun is a line as well.
  void end();

 private:
  void append(std::string_view part);
  std::function<void(std::string_view)> take_;
  std::string begun_;
};

}  // namespace attest
