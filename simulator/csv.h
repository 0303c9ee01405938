// Comma-separated values as RFC 4180 has them: a cell with a comma or a quote stands in quotes, a quote twice.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace attest {

std::vector<std::string> csv_cells(std::string_view line);
std::string csv_cell(std::string_view text);

}  // namespace attest
