// The rows of a CSV.
#pragma once
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "csv.h"

namespace attest {

/// Calls take(names, cells) for each row; lines that begin with '#' before the names are comments. Throws
/// std::runtime_error where there is no such file.
template <class Take>
void each_csv_row(const std::string& file, Take take) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string> names;
  each_line(text, [&](std::string_view line, std::size_t) {
    if (names.empty() && line.starts_with('#')) return;
    if (names.empty()) return void(names = csv_cells(line));
    take(names, csv_cells(line));
  });
}

}  // namespace attest
