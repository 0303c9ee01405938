#include "flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "attest/problem/error.h"
#include "parse.h"

namespace attest::tools {

void Flags::value(const std::string& name, const std::string& placeholder, const std::string& help) {
  // TakeAll, so that check() sees a second one and can say so in our words.
  app_.add_option(name, help)
      ->type_name(placeholder)
      ->type_size(1)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group_);
}

void Flags::optional_value(const std::string& name, const std::string& placeholder, const std::string& help) {
  app_.add_option(name, help)
      ->type_name(placeholder)
      ->type_size(1)
      ->expected(0, 1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group_);
}

// Not as CLI11's flag, which tells --name=true from --name nowhere.
void Flags::toggle(const std::string& name, const std::string& help) {
  optional_value(name, "", help);
  toggles_.insert(name);
}

void Flags::values(const std::string& name, const std::string& placeholder, const std::string& help) {
  value(name, placeholder, help);
  repeatable_.insert(name);
}

void Flags::positional(const std::string& placeholder, const std::string& help, int most) {
  positional_ = placeholder;
  repeatable_.insert(placeholder);
  app_.add_option(placeholder, help)->type_name("")->type_size(1)->expected(1, most)->allow_extra_args(most > 1);
}

std::vector<std::string> Flags::positional() const {
  std::vector<std::string> words = texts(positional_);
  if (words.empty())
    throw InvalidInput("command line", "no " + positional_, fmt::format("is given to attest {}", app_.get_name()));
  return words;
}

void Flags::check() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app_.get_options()) {
    const std::string name = option->get_name();
    names.push_back(name);
    if (option->count() == 0) continue;
    const std::vector<std::string>& results = option->results();
    if (option->count() > 1 && toggles_.contains(name))
      throw InvalidInput(field_of(name), name, fmt::format("was given {} times; once is enough", option->count()));
    if (option->count() > 1 && !repeatable_.contains(name))
      throw InvalidInput(field_of(name), fmt::format("{} and {}", in_quotes(results[0]), in_quotes(results[1])),
                         "were both given; a flag may be given once");
    if (toggles_.contains(name) && !results[0].empty())
      throw InvalidInput(field_of(name), in_quotes(results[0]), fmt::format("is a value, and {} takes none", name));
    for (const std::string& result : results)
      if (result.starts_with("--"))  // CLI11 takes the next flag for the value of the one before
        throw InvalidInput(field_of(name), in_quotes(result), "is a flag, where a value was expected");
  }
  const std::vector<std::string> extras = app_.remaining();
  if (extras.empty()) return;
  const std::string word = extras[0].substr(0, extras[0].find('='));
  throw InvalidInput("command line", in_quotes(word),
                     fmt::format("is no flag of 'attest {}'{}", app_.get_name(), did_you_mean(word, names)));
}

bool Flags::given(const std::string& name) const { return app_.count(name) > 0; }

std::optional<std::string> Flags::text(const std::string& name) const {
  const CLI::Option* option = app_.get_option(name);
  if (option->count() == 0) return std::nullopt;
  return toggles_.contains(name) ? "true" : option->results().at(0);
}

std::vector<std::string> Flags::texts(const std::string& name) const { return app_.get_option(name)->results(); }

std::optional<std::int64_t> Flags::integer(const std::string& name, std::int64_t low, std::int64_t high) const {
  const auto value = text(name);
  if (!value) return std::nullopt;
  return parse_integer(field_of(name), *value, low, high);
}

std::optional<std::uint64_t> Flags::unsigned_integer(const std::string& name) const {
  const auto value = text(name);
  if (!value) return std::nullopt;
  return parse_unsigned(field_of(name), *value);
}

std::optional<double> Flags::number(const std::string& name) const {
  const auto value = text(name);
  if (!value) return std::nullopt;
  return parse_number(field_of(name), *value);
}

std::optional<double> Flags::seconds(const std::string& name) const {
  const auto value = text(name);
  if (!value) return std::nullopt;
  return parse_seconds(field_of(name), *value);
}

std::vector<std::string> Flags::given_of(const std::vector<std::string>& names) const {
  std::vector<std::string> found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found), [&](const auto& name) {
    const CLI::Option* const option = app_.get_option_no_throw(name);
    return option && option->count() > 0;
  });
  return found;
}

std::string field_of(const std::string& flag) {
  std::string field = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::replace(field.begin(), field.end(), '-', '_');
  return field;
}

}  // namespace attest::tools
