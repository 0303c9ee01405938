#include "csv.h"

#include <algorithm>
#include <cstdlib>

namespace attest {

std::vector<std::string> csv_cells(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"')
      cells.back() += line[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

CsvTable::CsvTable(std::string_view text) {
  each_line(text, [&](std::string_view line, std::size_t) {
    if (line.empty() || line[0] == '#') return;
    if (names_.empty())
      names_ = csv_cells(line);
    else
      lines_.push_back(csv_cells(line));
  });
}

const std::string& CsvTable::cell(std::size_t line, std::string_view name) const {
  return lines_.at(line).at(static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin()));
}

int CsvTable::number(std::size_t line, std::string_view name) const { return std::atoi(cell(line, name).c_str()); }

}  // namespace attest
