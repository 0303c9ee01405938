// The rows of a measured file, by the names in its first line.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "measured/csv_rows.h"

namespace attest {

using MeasuredRow = std::map<std::string, std::string>;

/// Throws as each_csv_row().
inline std::vector<MeasuredRow> measured_rows(const std::string& file) {
  std::vector<MeasuredRow> rows;
  each_csv_row(file, [&](const std::vector<std::string>& names, const std::vector<std::string>& cells) {
    MeasuredRow& row = rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = cells.at(i);
  });
  return rows;
}

}  // namespace attest
