#include "machine_code.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>
#include <stdexcept>

#include "attest/problem/error.h"
#include "attest/problem/find_program.h"
#include "attest/problem/lines.h"
#include "attest/problem/process.h"
#include "attest/problem/text.h"
#include "parse.h"
#include "paths.h"

namespace attest::tools {
namespace {

bool is_elf(const std::string& file) {
  std::array<char, 4> magic{};
  std::ifstream(file, std::ios::binary).read(magic.data(), magic.size());
  return std::string_view(magic.data(), magic.size()) ==
         "\x7f"
         "ELF";
}

std::string last_line(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return shortened(text.substr(text.rfind('\n') + 1), 200);
}

std::string cuobjdump() {
  std::vector<std::string> folders = {"/usr/local/cuda/bin"};
  if (const char* const home = std::getenv("CUDA_HOME")) folders.insert(folders.begin(), fmt::format("{}/bin", home));
  std::string found = find_program("cuobjdump", folders);
  if (found.empty())
    throw EnvironmentError(
        "cuobjdump: is neither in $PATH nor in /usr/local/cuda/bin; it comes with the CUDA Toolkit. "
        "A listing made elsewhere does as well: cuobjdump -sass FILE > FILE.sass, --kernel FILE.sass");
  return found;
}

/// Its path as others know it, or as it was given where it has none.
std::string path_for_others(const std::string& file) {
  const std::filesystem::path path = full_path(file);
  return path.empty() ? file : path.string();
}

[[noreturn]] void refuse_cuobjdump(const std::string& file, std::string_view why) {
  throw EnvironmentError(fmt::format("cuobjdump: {}: {}", in_quotes(path_for_others(file)), why));
}

/// What cuobjdump prints of an object with these flags; nothing where that has no code.
void read_cuobjdump(std::vector<std::string> flags, const std::string& file, std::size_t most_bytes,
                    const std::function<void(std::string_view)>& take) {
  constexpr double silent_seconds = 300;  // it prints as it goes
  flags.insert(flags.begin(), cuobjdump());
  flags.push_back(path_for_others(file));
  std::size_t bytes = 0;
  const auto count = [&](std::string_view line) {
    bytes += line.size() + 1;
    if (bytes > most_bytes) throw std::length_error(fmt::format("more than {} bytes printed", most_bytes));
    take(line);
  };
  try {
    const Ended ended = run_lines(flags, count, silent_seconds);
    const std::string said = last_line(ended.err);
    if (!ended.good() && !said.ends_with("does not contain device code"))
      refuse_cuobjdump(file, fmt::format("{}{}{}", ended.how(), said.empty() ? "" : ": ", said));
  } catch (const std::length_error& error) {
    refuse_cuobjdump(file, error.what());
  }
}

/// What somebody has disassembled.
void read_listing(const std::string& file, const std::function<void(std::string_view)>& take) try {
  Lines lines(take);
  std::ifstream in(file, std::ios::binary);
  for (std::array<char, 1 << 14> bytes{}; in.read(bytes.data(), bytes.size()), in.gcount() > 0;)
    lines.add({bytes.data(), static_cast<std::size_t>(in.gcount())});
  lines.end();
  if (in.bad()) throw InvalidInput("kernel", in_quotes(file), fmt::format("cannot be read: {}", std::strerror(errno)));
} catch (const std::length_error& error) {
  throw InvalidInput("kernel", in_quotes(file), fmt::format("has {}", error.what()));
}

/// That an object has code for, each once, by lines as "ELF file    1: kernels.1.sm_90a.cubin".
std::vector<std::string> archs_of(const std::string& file) {
  constexpr std::size_t most_bytes = 64 << 20;  // a line for each of the object's parts
  std::set<std::string> archs;
  read_cuobjdump({"--list-elf"}, file, most_bytes, [&](std::string_view line) {
    constexpr std::string_view suffix = ".cubin";
    const std::size_t at = line.rfind(".sm_");
    if (line.ends_with(suffix) && at != std::string_view::npos)
      archs.insert(shortened(escaped(line.substr(at + 1, line.size() - suffix.size() - at - 1)), 20));
  });
  return {archs.begin(), archs.end()};
}

void refuse_other_arch(const std::string& arch, const std::vector<std::string>& there, const std::string& file) {
  if (arch.empty() || std::ranges::find(there, arch) != there.end()) return;
  throw InvalidInput("arch", in_quotes(arch),
                     fmt::format("has no code in {}{}{}", in_quotes(file), there.empty() ? "" : ", which has it for ",
                                 shortened(fmt::format("{}", fmt::join(there, ", ")), 200)));
}

std::string why_cut_off(const std::string& function) {
  return fmt::format("is cut off: the line of dots behind function {} is missing", in_quotes(function));
}

/// A listing that is cut off right behind a name, where nothing tells who has made it.
void refuse_without_instructions(const std::vector<SassFunction>& functions, const std::string& file) {
  const auto empty = std::ranges::find_if(functions, [](const SassFunction& f) { return f.code.empty(); });
  if (empty != functions.end())
    throw InvalidInput("kernel", in_quotes(file),
                       fmt::format("has function {} without instructions", in_quotes(empty->name)));
}

}  // namespace

std::vector<SassFunction> read_machine_code(const std::string& file, const std::vector<std::string>& parts,
                                            const std::string& arch, const MachineCodeLimits& limits) {
  SassReader reader(parts, arch, limits.kept_bytes);
  const auto take = [&](std::string_view line) {
    try {
      reader.line(line);
    } catch (const std::length_error& error) {
      throw InvalidInput("kernel", in_quotes(file), fmt::format("has {}", error.what()));
    }
  };
  if (is_elf(file)) {
    std::vector<std::string> flags = {"-sass"};
    if (!arch.empty()) {
      refuse_other_arch(arch, archs_of(file), path_for_others(file));
      flags.insert(flags.end(), {"-arch", arch});  // half the time where there are two
    }
    read_cuobjdump(flags, file, limits.printed_bytes, take);
    if (!reader.without_dots().empty())
      refuse_cuobjdump(file, fmt::format("what it printed {}", why_cut_off(reader.without_dots())));
  } else {
    read_listing(file, take);
    if (reader.has_flags() && !reader.without_dots().empty())
      throw InvalidInput("kernel", in_quotes(file), why_cut_off(reader.without_dots()));
  }
  if (reader.names().empty()) throw InvalidInput("kernel", in_quotes(file), "holds no machine code of a GPU");
  refuse_other_arch(arch, reader.archs(), file);
  std::vector<SassFunction> functions = reader.take();
  if (functions.empty())
    throw InvalidInput("function", fmt::format("'{}'", fmt::join(parts, "' with '")),
                       fmt::format("is in none of the {} functions' names; the first is {}", reader.names().size(),
                                   in_quotes(reader.names().front())));
  refuse_without_instructions(functions, file);
  return functions;
}

}  // namespace attest::tools
