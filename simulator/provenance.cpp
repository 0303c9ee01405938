#include "attest/simulator/provenance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <variant>
#include <vector>

#include "attest/problem/error.h"
#include "attest/problem/text.h"

namespace attest {
namespace {

constexpr std::array<std::string_view, 2> profilers = {"cupti", "ncu"};  // by Profiler
constexpr std::array<std::string_view, 2> cold_or_warm = {"cold", "warm"};

using Member = std::variant<std::string Provenance::*, std::int64_t Provenance::*, std::vector<double> Provenance::*,
                            std::optional<Profiler> Provenance::*, std::optional<bool> Provenance::*>;
struct Field {
  std::string_view key;
  Member member;
};
constexpr Field fields[] = {{"gpu", &Provenance::gpu},
                            {"num_sms", &Provenance::num_sms},
                            {"compute_capability", &Provenance::compute_capability},
                            {"gpc_sides", &Provenance::gpc_sides},
                            {"driver", &Provenance::driver},
                            {"cuda", &Provenance::cuda},
                            {"date", &Provenance::date},
                            {"via", &Provenance::via},
                            {"caches", &Provenance::warm},
                            {"command", &Provenance::command}};

// A field's value as text; empty where it is not known.
std::string written(const std::string& value) { return value; }
std::string written(std::int64_t value) { return value == 0 ? "" : fmt::format("{}", value); }
std::string written(const std::vector<double>& value) { return fmt::format("{}", fmt::join(value, " ")); }
std::string written(std::optional<Profiler> value) { return value ? std::string(to_string(*value)) : ""; }
std::string written(std::optional<bool> value) { return value ? std::string(cold_or_warm[*value ? 1 : 0]) : ""; }

// And from text: why it cannot be, empty where it can.
std::string take(std::string& value, std::string_view text) {
  value = text;
  return text.empty() ? "is empty" : "";
}
std::string take(std::int64_t& value, std::string_view text) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1) return "is no whole number above 0";
  return written(value) == text ? "" : fmt::format("is no whole number as such are written; {} is", value);
}
std::string take(std::vector<double>& value, std::string_view text) {
  value.clear();
  for (std::size_t at = 0; at < text.size(); at += 2) {
    const bool is_side = (text[at] == '0' || text[at] == '1') && (at + 1 == text.size() || text[at + 1] == ' ');
    if (!is_side) return "is no list of 0 and 1 with a space between them";
    value.push_back(text[at] - '0');
  }
  return text.empty() ? "is empty" : "";
}
template <class T>
std::string take_word(std::optional<T>& value, std::string_view text, const std::array<std::string_view, 2>& words) {
  const auto at = std::ranges::find(words, text);
  if (at == words.end()) return fmt::format("is none of {}", fmt::join(words, ", "));
  value = static_cast<T>(at - words.begin());
  return "";
}
std::string take(std::optional<Profiler>& value, std::string_view text) { return take_word(value, text, profilers); }
std::string take(std::optional<bool>& value, std::string_view text) { return take_word(value, text, cold_or_warm); }

std::string all_keys() {
  std::string keys;
  for (const Field& field : fields) keys += fmt::format("{}{}", keys.empty() ? "" : ", ", field.key);
  return keys;
}

// A key as somebody may write it from memory: "Num SMs" and "num-sm" are "num_sms".
std::string letters_of(std::string_view key) {
  std::string letters;
  for (const char c : key)
    if (c != ' ' && c != '_' && c != '-') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (letters.ends_with('s')) letters.pop_back();
  return letters;
}

}  // namespace

std::string_view to_string(Profiler profiler) { return profilers.at(static_cast<std::size_t>(profiler)); }

std::optional<Profiler> profiler_called(std::string_view name) {
  std::optional<Profiler> found;
  take_word(found, name, profilers);
  return found;
}

std::string to_text(const Provenance& how) {
  std::string text;
  const auto add = [&](std::string_view before, const std::string& words) {
    if (!words.empty()) text += fmt::format("{}{}", text.empty() ? "" : before, words);
  };
  add("", how.gpu);
  if (how.num_sms != 0) add(", ", fmt::format("{} SMs", how.num_sms));
  if (const std::int64_t of = how.compute_capability; of != 0)
    add(how.num_sms != 0 ? " of " : ", ", fmt::format("compute capability {}.{}", of / 10, of % 10));
  if (!how.gpc_sides.empty()) add(", ", "GPCs on sides " + written(how.gpc_sides));
  if (!how.driver.empty()) add(", ", "driver " + how.driver);
  if (!how.cuda.empty()) add(", ", "CUDA " + how.cuda);
  add("; ", how.date);
  if (how.via) add("; ", fmt::format("through {}", to_string(*how.via)));
  if (how.warm) add(how.via ? ", " : "; ", written(how.warm) + " caches");
  return text;
}

std::string to_comments(const Provenance& how) {
  std::string lines;
  for (const Field& field : fields) {
    const std::string value = std::visit([&](auto member) { return written(how.*member); }, field.member);
    if (!value.empty()) lines += fmt::format("# {}: {}\n", field.key, value);
  }
  return lines;
}

bool ProvenanceReader::read(std::string_view comment, std::size_t line) {
  const std::size_t mark = comment.find_first_of(":=");
  if (mark == std::string_view::npos) return false;
  const std::string_view key = trimmed(comment.substr(0, mark)), value = trimmed(comment.substr(mark + 1));
  const auto* const field =
      std::ranges::find(fields, letters_of(key), [](const Field& of) { return letters_of(of.key); });
  if (field == std::end(fields)) return false;
  if (key != field->key)
    throw InvalidInput(file_, fmt::format("line {}: '{}'", line, shortened(key, 60)),
                       fmt::format("is none of the keys {}; {} is meant", all_keys(), field->key));
  if (comment[mark] == '=')
    throw InvalidInput(file_, fmt::format("line {}: '{}='", line, key), fmt::format("is no key; '{}:' is meant", key));
  const auto refuse = [&](const std::string& why) {
    throw InvalidInput(file_, fmt::format("line {}: {}: '{}'", line, field->key, shortened(value, 60)), why);
  };
  const auto take_it = [&](auto member) { return take(how_.*member, value); };
  if (const std::string why = std::visit(take_it, field->member); !why.empty()) refuse(why);
  const auto& [before, at] = seen_.try_emplace(field->key, value, line).first->second;
  if (before != value) refuse(fmt::format("contradicts '{}' of line {}; keep one of them", shortened(before, 60), at));
  return true;
}

}  // namespace attest
