// attest audit: the machine code of a kernel, its main loop beside what its plan says the loop must hold.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "attest/plan/catalog.h"
#include "attest/problem/error.h"
#include "attest/problem/find_program.h"
#include "attest/problem/process.h"
#include "attest/problem/text.h"
#include "attest/sass/loops.h"
#include "attest/simulator/key_tile_instructions.h"
#include "case_flags.h"
#include "commands.h"
#include "kernel_flag.h"
#include "output.h"
#include "parse.h"
#include "paths.h"
#include "plan_flags.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 2> built_in = {"sm80", "unfused"};

/// Where the machine code is, and which of its functions are meant.
struct Subject {
  std::string file;
  std::vector<std::string> parts;
  bool is_sm80 = false;  // whose plan `attest` is
};

/// A case chooses one of sm80's functions by its template arguments, as they stand in demangled names.
std::string sm80_function(const Case& c) {
  const Sm80Choice choice = sm80_choice(c);
  return fmt::format("(attest::Dtype){}, (attest::Sm80Tile){}, (attest::Sm80Kind){}>",
                     static_cast<int>(c.problem.dtype), static_cast<int>(choice.tile), static_cast<int>(choice.kind));
}

Subject read_subject(const Flags& flags, const std::optional<Case>& c) {
  const std::string kernel = flags.text("--kernel").value_or("sm80");
  Subject subject;
  if (subject.file = code_file(kernel); !subject.file.empty()) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(kernel, error) || !std::ifstream(kernel))
      throw InvalidInput("kernel", in_quotes(kernel), "is no file that can be read");
  } else if (std::find(built_in.begin(), built_in.end(), kernel) == built_in.end()) {
    throw InvalidInput("kernel", in_quotes(kernel),
                       fmt::format("has no machine code for a GPU: {}, or a file with / or . "
                                   "in its name, have",
                                   fmt::join(built_in, ", ")));
  } else if (!ATTEST_HAVE_CUDA) {
    throw EnvironmentError(
        fmt::format("kernel: {}: is not in this program, which was built without CUDA", in_quotes(kernel)));
  } else {
    subject.file = "/proc/self/exe";
    subject.parts.push_back(fmt::format("attest::{}::", kernel));
    subject.is_sm80 = kernel == "sm80";
    if (c && subject.is_sm80) subject.parts.push_back(sm80_function(*c));
  }
  if (const auto part = flags.text("--function")) subject.parts.push_back(*part);
  return subject;
}

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

/// Of a cuobjdump that failed; one that found no code is the caller's to tell.
void refuse_end(const Ended& ended, const std::string& target, const std::string& arch) {
  const std::string said = last_line(ended.err);
  if (ended.good() || said.ends_with("does not contain device code")) return;
  if (!arch.empty() && said.ends_with("is not defined for option 'gpu-architecture'"))
    throw InvalidInput("arch", in_quotes(arch), "is none that cuobjdump knows");
  throw EnvironmentError(
      fmt::format("cuobjdump: {}: {}{}", in_quotes(target), ended.how(), said.empty() ? "" : ": " + said));
}

/// Its path as others know it, or as it was given where it has none.
std::string path_for_others(const std::string& file) {
  const std::filesystem::path path = full_path(file);
  return path.empty() ? file : path.string();
}

constexpr double silent_seconds = 300;  // of cuobjdump; it prints as it goes

/// Disassembles an object, or reads what somebody has disassembled.
void read_listing(const std::string& file, const std::string& arch, SassReader& reader) {
  if (!is_elf(file)) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) reader.line(line);
    if (in.bad())
      throw InvalidInput("kernel", in_quotes(file), fmt::format("cannot be read: {}", std::strerror(errno)));
    return;
  }
  const std::string target = path_for_others(file);
  std::vector<std::string> command = {cuobjdump(), "-sass", target};
  if (!arch.empty()) command.insert(command.begin() + 1, {"-arch", arch});  // half the time where there are two
  const auto read = [&](std::string_view line) { reader.line(line); };
  refuse_end(run_lines(command, read, silent_seconds), target, arch);
}

/// That an object has code for, each once, by lines as "ELF file    1: kernels.1.sm_90a.cubin".
std::vector<std::string> archs_of(const std::string& file) {
  std::set<std::string> archs;
  const std::string target = path_for_others(file);
  const auto add = [&](std::string_view line) {
    constexpr std::string_view suffix = ".cubin";
    const std::size_t at = line.rfind(".sm_");
    if (line.ends_with(suffix) && at != std::string_view::npos)
      archs.insert(shortened(escaped(line.substr(at + 1, line.size() - suffix.size() - at - 1)), 20));
  };
  refuse_end(run_lines({cuobjdump(), "--list-elf", target}, add, silent_seconds), target, "");
  return {archs.begin(), archs.end()};
}

std::vector<SassFunction> read_functions(const Flags& flags, const Subject& subject) {
  const std::string arch = flags.text("--arch").value_or("");
  SassReader reader(subject.parts, arch);
  read_listing(subject.file, arch, reader);
  const std::vector<std::string>& archs = reader.archs();
  if (!arch.empty() && std::find(archs.begin(), archs.end(), arch) == archs.end()) {
    const std::vector<std::string> there = is_elf(subject.file) ? archs_of(subject.file) : archs;
    const std::string file = is_elf(subject.file) ? path_for_others(subject.file) : subject.file;
    throw InvalidInput("arch", in_quotes(arch),
                       fmt::format("has no code in {}{}{}", in_quotes(file), there.empty() ? "" : ", which has it for ",
                                   shortened(fmt::format("{}", fmt::join(there, ", ")), 200)));
  }
  if (reader.names().empty()) throw InvalidInput("kernel", in_quotes(subject.file), "holds no machine code of a GPU");
  std::vector<SassFunction> functions = reader.take();
  if (functions.empty())
    throw InvalidInput("function", fmt::format("'{}'", fmt::join(subject.parts, "' with '")),
                       fmt::format("is in none of the {} functions' names; the first is {}", reader.names().size(),
                                   in_quotes(reader.names().front())));
  return functions;
}

/// A prediction for a family, where there is one.
std::optional<double> predicted(const KeyTileInstructions& tile, SassFamily family) {
  switch (family) {
    case SassFamily::copy_async:
      return tile.copies;
    case SassFamily::load_matrix:
      return tile.load_matrix;
    case SassFamily::multiply:
      return tile.multiply;
    case SassFamily::multiply_warpgroup:
      return tile.multiply_warpgroup;
    case SassFamily::exponential:
      return tile.exponentials;
    case SassFamily::barrier:
      return tile.barriers;
    case SassFamily::load_local:
    case SassFamily::store_local:
      return 0;
    default:
      return std::nullopt;
  }
}

SassFamily family_at(std::size_t f) { return static_cast<SassFamily>(f); }

Json counts_json(const SassCounts& counts) {
  Json json = {{"instructions", counts.instructions}};
  for (std::size_t f = 0; f < num_sass_families; ++f) {
    json[std::string(opcode_of(family_at(f)))] = counts.by_family[f];
  }
  Json widths = Json::object();
  for (std::size_t f = 0; f < num_sass_families; ++f)
    for (const auto& [bytes, times] : counts.widths[f])
      widths[std::string(opcode_of(family_at(f)))][std::to_string(bytes)] = times;
  json["bytes_a_lane"] = widths;
  return json;
}

std::string widths_text(const SassCounts& counts) {
  std::vector<std::string> parts;
  for (std::size_t f = 0; f < num_sass_families; ++f)
    for (const auto& [bytes, times] : counts.widths[f])
      parts.push_back(fmt::format("{} {} x {} B", opcode_of(family_at(f)), times, bytes));
  return parts.empty() ? "" : fmt::format("  a lane moves: {}\n", fmt::join(parts, ", "));
}

struct Audited {
  const SassFunction& function;
  SassCounts whole;
  std::vector<SassLoop> loops;
};

std::string to_table(const Audited& a, const std::optional<KeyTileInstructions>& tile) {
  std::vector<std::size_t> shown;
  for (std::size_t f = 0; f < num_sass_families; ++f)
    if (a.whole.by_family[f] > 0 || (tile && predicted(*tile, family_at(f)).value_or(0) > 0)) shown.push_back(f);
  std::string text = fmt::format("{} {}\n  {:<22} {:>7}", a.function.arch, a.function.name, "", "all");
  for (const std::size_t f : shown) text += fmt::format(" {:>8}", opcode_of(family_at(f)));
  const auto row = [&](std::string_view name, const SassCounts& counts) {
    text += fmt::format("\n  {:<22} {:>7}", name, counts.instructions);
    for (const std::size_t f : shown) text += fmt::format(" {:>8}", counts.by_family[f]);
  };
  row("function", a.whole);
  for (const SassLoop& loop : a.loops)
    row(fmt::format("loop {:#x}..{:#x}", loop.first_address, loop.last_address), loop.counts);
  if (tile) {
    text += fmt::format("\n  {:<22} {:>7}", "the plan, a key tile", "");
    for (const std::size_t f : shown) {
      const auto n = predicted(*tile, family_at(f));
      text += fmt::format(" {:>8}", n ? fmt::format("{:g}", *n) : "");
    }
  }
  return text + "\n" + widths_text(a.whole);
}

Json to_json(const Audited& a) {
  Json loops = Json::array();
  for (const SassLoop& loop : a.loops)
    loops.push_back({{"first_address", loop.first_address},
                     {"last_address", loop.last_address},
                     {"counts", counts_json(loop.counts)}});
  return {{"name", a.function.name}, {"arch", a.function.arch}, {"counts", counts_json(a.whole)}, {"loops", loops}};
}

Json to_json(const KeyTileInstructions& tile) {
  Json json = Json::object();
  for (std::size_t f = 0; f < num_sass_families; ++f)
    if (const auto n = predicted(tile, family_at(f))) json[std::string(opcode_of(family_at(f)))] = *n;
  return json;
}

/// What would change nothing: a case chooses among sm80's functions, and a plan is only made where there is one.
void refuse_without_plan(const Flags& flags, bool is_sm80) {
  if (flags.given("--plan")) return;
  const std::vector<std::string> of_case = case_flags_given(flags);
  if (is_sm80 && !of_case.empty()) return;
  std::vector<std::string> given = flags.given_of({"--device", "--set"});
  given.insert(given.end(), of_case.begin(), of_case.end());
  if (!given.empty())
    throw InvalidInput(field_of(given[0]), given[0], is_sm80 ? "goes with --plan P or a CASE" : "goes with --plan P");
}

ExitCode run(const Flags& flags) {
  const Results results(flags);
  std::optional<Case> c;
  if (!case_flags_given(flags).empty() || flags.given("--plan")) c = read_case(flags);
  const Subject subject = read_subject(flags, c);
  refuse_without_plan(flags, subject.is_sm80);
  std::optional<KeyTileInstructions> tile;
  if (c && (subject.is_sm80 || flags.given("--plan")))
    tile = key_tile_instructions(read_plan(flags, *c, read_device(flags)).plan);
  const std::vector<SassFunction> functions = read_functions(flags, subject);

  std::string text;
  Json list = Json::array();
  for (const SassFunction& function : functions) {
    const Audited audited{function, count_sass(function.code), main_loops(function)};
    text += to_table(audited, tile);
    list.push_back(to_json(audited));
  }
  Json json = {{"file", subject.file}, {"functions", list}};
  if (tile) json["plan_key_tile"] = to_json(*tile);
  results.finish("audit", json, text);
  return exit_pass;
}

}  // namespace

Command audit_command() {
  return {"audit", "A kernel's machine code: its main loop beside what its plan asks for",
          "  attest audit --kernel sm80 --headdim 128 --seqlen-q 4096 --seqlen-k 4096 --arch sm_90a\n"
          "  attest audit --kernel ./libmine.so --function my_forward --plan fa2 --headdim 128\n"
          "  cuobjdump -sass mine.cubin > mine.sass && attest audit --kernel mine.sass",
          [](Flags& flags) {
            flags.group("Audit");
            flags.value("--kernel", "K|FILE",
                        "sm80 or unfused; or a library, a program, a .cubin, or what cuobjdump -sass printed (sm80)");
            flags.value("--function", "TEXT", "Only functions with TEXT in their demangled name");
            flags.value("--arch", "SM", "Only code for one architecture, as sm_90");
            flags.value("--device", "D", "The device that --plan is made for (h100)");
            declare_plan_flags(flags);
            declare_case_flags(flags);
          },
          run};
}

}  // namespace attest::tools
