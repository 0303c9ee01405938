// The rows of a CSV.
#pragma once
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "csv.h"

namespace attest {

/// Calls take(names, cells) for each row; lines that begin with '#' before the names are comments. Throws
/// std::runtime_error where there is no such file.
template <class Take>
void each_csv_row(const std::string& file, Take take) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file);
  std::string line;
  do std::getline(in, line);
  while (line.starts_with('#'));
  const std::vector<std::string> names = csv_cells(line);
  while (std::getline(in, line)) take(names, csv_cells(line));
}

}  // namespace attest
