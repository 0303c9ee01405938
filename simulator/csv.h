// Comma-separated values as RFC 4180 has them: a cell with a comma or a quote stands in quotes, a quote twice.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// Calls take(line, number) for each line of `text`, from 1 on, without the LF or CR LF that ends it.
template <class Take>
void each_line(std::string_view text, Take take) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    take(line, number);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

/// The cells of a line.
std::vector<std::string> csv_cells(std::string_view line);
std::string csv_cell(std::string_view text);

/// A table whose first line names its columns; lines that begin with '#' are comments.
class CsvTable {
 public:
  explicit CsvTable(std::string_view text);
  /// Lines besides the first, each of as many cells as it has.
  const std::vector<std::vector<std::string>>& lines() const { return lines_; }
  /// Of a line the cell under a name, as text, and as a whole number, 0 where it is none.
  const std::string& cell(std::size_t line, std::string_view name) const;
  int number(std::size_t line, std::string_view name) const;

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> lines_;
};

}  // namespace attest
