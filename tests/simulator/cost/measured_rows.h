// The rows of a micro-benchmark's CSV, by the names in its first line.
#pragma once
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "csv.h"

namespace attest {

using MeasuredRow = std::map<std::string, std::string>;

/// Throws std::runtime_error where there is no such file.
inline std::vector<MeasuredRow> measured_rows(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file);
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> names = csv_cells(line);
  std::vector<MeasuredRow> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = csv_cells(line);
    MeasuredRow& row = rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = cells.at(i);
  }
  return rows;
}

}  // namespace attest
