#include "attest/problem/lines.h"

#include <fmt/format.h>

#include <stdexcept>

namespace attest {

void Lines::append(std::string_view part) {
  if (part.size() > most_bytes - begun_.size())
    throw std::length_error(fmt::format("a line of more than {} bytes", most_bytes));
  begun_.append(part);
}

void Lines::add(std::string_view piece) {
  for (std::size_t end = 0; (end = piece.find('\n')) != std::string_view::npos; piece.remove_prefix(end + 1)) {
    append(piece.substr(0, end));
    take_(begun_);
    begun_.clear();
  }
  append(piece);
}

void Lines::end() {
  if (!begun_.empty()) take_(begun_);
  begun_.clear();
}

}  // namespace attest
