#include "attest/fuzz/outcomes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "attest/fuzz/tally.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

constexpr std::string_view letters = "pvswozchu";  // in the order of all_statuses
static_assert(letters.size() == std::size(all_statuses));

}  // namespace

std::string outcomes_text(const std::vector<Status>& outcomes) {
  std::string text;
  for (auto at = outcomes.begin(); at != outcomes.end();) {
    const auto end = std::find_if(at, outcomes.end(), [&](Status s) { return s != *at; });
    text += fmt::format("{}{}", end - at, letters[static_cast<std::size_t>(*at)]);
    at = end;
  }
  return text;
}

std::vector<Status> outcomes_from_text(std::string_view field, std::string_view text) {
  constexpr std::size_t most = 1'000'000'000;
  std::vector<Status> outcomes;
  for (const char *at = text.data(), *const end = at + text.size(); at != end;) {
    std::size_t count = 0;
    const auto [letter, error] = std::from_chars(at, end, count);
    const std::size_t status = error == std::errc() && letter != end ? letters.find(*letter) : std::string_view::npos;
    if (status == std::string_view::npos || count == 0 || count > most - outcomes.size())
      throw InvalidInput(field, fmt::format("'{}'", std::string_view(at, end).substr(0, 20)),
                         fmt::format("is no run of at most {} cases of one status, such as 512p", most));
    outcomes.insert(outcomes.end(), count, all_statuses[status]);
    at = letter + 1;
  }
  return outcomes;
}

}  // namespace attest
