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

}  // namespace attest
