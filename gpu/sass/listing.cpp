#include "attest/sass/listing.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "attest/problem/text.h"

namespace attest {
namespace {

/// Of a mangled name, as C++ has them: others may read as a type.
std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                          &std::free);
  return status == 0 ? plain.get() : name;
}

/// What follows `mark`, up to white space; empty where there is none.
std::string_view word_after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = trimmed(text.substr(at + mark.size()));
  return rest.substr(0, rest.find_first_of(" \t"));
}

std::optional<std::int64_t> hexadecimal(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  return value;
}

/// "/*0a10*/  @!P0 BRA 0x1230 ;  /* encoding */"
std::optional<SassInstruction> instruction(std::string_view line) {
  line = trimmed(line);
  if (!line.starts_with("/*")) return std::nullopt;
  const std::size_t close = line.find("*/"), semicolon = line.find(';');
  if (close == std::string_view::npos || semicolon == std::string_view::npos || semicolon < close) return std::nullopt;
  const auto address = hexadecimal(line.substr(2, close - 2));
  if (!address) return std::nullopt;
  std::string_view text = trimmed(line.substr(close + 2, semicolon - close - 2));
  if (text.starts_with('@')) text = trimmed(text.substr(std::min(text.find_first_of(" \t"), text.size())));
  const std::string_view opcode = text.substr(0, text.find_first_of(" \t"));
  if (opcode.empty()) return std::nullopt;
  SassInstruction found{*address, std::string(opcode), std::nullopt};
  const std::size_t last = text.rfind("0x");
  if (opcode.substr(0, opcode.find('.')) == "BRA" && last != std::string_view::npos)
    found.target = hexadecimal(text.substr(last + 2));
  return found;
}

}  // namespace

SassReader::SassReader(std::vector<std::string> parts, std::string arch, std::size_t most_bytes)
    : parts_(std::move(parts)), wanted_arch_(std::move(arch)), most_bytes_(most_bytes) {}

bool SassReader::wanted(const std::string& name) const {
  return (wanted_arch_.empty() || arch_ == wanted_arch_) &&
         std::all_of(parts_.begin(), parts_.end(),
                     [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

void SassReader::take_memory(std::size_t bytes) {
  bytes_ += bytes;
  if (bytes_ <= most_bytes_) return;
  if (bytes_of_names_ > most_bytes_)  // of all functions, whichever are asked for
    throw std::length_error(fmt::format("names of functions that take more than {} bytes of memory", most_bytes_));
  throw std::length_error(fmt::format(
      "functions that take more than {} bytes of memory; ask for fewer, by name or architecture", most_bytes_));
}

void SassReader::list_once(std::vector<std::string>& list, const std::string& name, const std::string& mark) {
  if (!seen_.insert(mark + name).second) return;
  list.push_back(name);
  const std::size_t bytes = 2 * (sizeof(std::string) + name.size());
  bytes_of_names_ += bytes;
  take_memory(bytes);
}

void SassReader::begin(std::string name) {
  constexpr std::size_t in_report = 1 << 13;  // a function's table and JSON
  keeping_ = wanted(name);
  list_once(names_, name, "");
  if (!arch_.empty()) list_once(archs_, arch_, "code for ");
  if (!keeping_) return;
  take_memory(sizeof(SassFunction) + name.size() + in_report);
  functions_.push_back({std::move(name), arch_, {}});
}

void SassReader::line(std::string_view text) {
  const auto leave = [&](std::string next) {
    if (cut_off_.empty()) cut_off_ = std::move(open_);
    open_ = std::move(next);
  };
  if (const auto arch = word_after(text, "code for "); !arch.empty()) {
    leave("");
    arch_ = escaped(arch);
    keeping_ = false;
  } else if (const auto name = word_after(text, "Function : "); !name.empty()) {
    std::string plain = escaped(demangled(std::string(name)));
    leave(plain);
    begin(std::move(plain));
  } else if (const std::string_view word = trimmed(text); word.starts_with(".headerflags")) {
    has_flags_ = true;
  } else if (!word.empty() && word.find_first_not_of('.') == std::string_view::npos) {
    open_.clear();
  } else if (keeping_) {
    auto found = instruction(text);
    if (!found) return;
    constexpr std::size_t in_loop = 6 << 10;  // half of the 2 to 13 KB that a loop's counts, row and JSON take
    const bool is_back = found->target && *found->target < found->address;
    take_memory(sizeof *found + found->opcode.size() + (is_back ? in_loop : 0));
    functions_.back().code.push_back(*std::move(found));
  }
}

}  // namespace attest
