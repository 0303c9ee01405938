// attest audit: the machine code of a kernel, its main loop beside what its plan says the loop must hold.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attest/plan/catalog.h"
#include "attest/problem/error.h"
#include "attest/problem/text.h"
#include "attest/sass/loops.h"
#include "attest/simulator/key_tile_instructions.h"
#include "case_flags.h"
#include "commands.h"
#include "kernel_flag.h"
#include "machine_code.h"
#include "output.h"
#include "parse.h"
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
  SassContents contents;
};

std::string to_table(const Audited& a, const std::optional<KeyTileInstructions>& tile) {
  std::vector<std::size_t> shown;
  for (std::size_t f = 0; f < num_sass_families; ++f)
    if (a.contents.whole.by_family[f] > 0 || (tile && predicted(*tile, family_at(f)).value_or(0) > 0))
      shown.push_back(f);
  constexpr std::size_t longest_arch = 20, longest_name = 160;  // template arguments may take thousands; JSON has all
  std::string text = fmt::format("{} {}\n  {:<22} {:>7}", shortened(a.function.arch, longest_arch),
                                 without_middle(a.function.name, longest_name), "", "all");
  for (const std::size_t f : shown) text += fmt::format(" {:>8}", opcode_of(family_at(f)));
  const auto row = [&](std::string_view name, const SassCounts& counts) {
    text += fmt::format("\n  {:<22} {:>7}", name, counts.instructions);
    for (const std::size_t f : shown) text += fmt::format(" {:>8}", counts.by_family[f]);
  };
  row("function", a.contents.whole);
  for (const SassLoop& loop : a.contents.main_loops)
    row(fmt::format("loop {:#x}..{:#x}", loop.first_address, loop.last_address), loop.counts);
  if (tile) {
    text += fmt::format("\n  {:<22} {:>7}", "the plan, a key tile", "");
    for (const std::size_t f : shown) {
      const auto n = predicted(*tile, family_at(f));
      text += fmt::format(" {:>8}", n ? fmt::format("{:g}", *n) : "");
    }
  }
  return text + "\n" + widths_text(a.contents.whole);
}

Json to_json(const Audited& a) {
  Json loops = Json::array();
  for (const SassLoop& loop : a.contents.main_loops)
    loops.push_back({{"first_address", loop.first_address},
                     {"last_address", loop.last_address},
                     {"counts", counts_json(loop.counts)}});
  return {{"name", a.function.name},
          {"arch", a.function.arch},
          {"counts", counts_json(a.contents.whole)},
          {"loops", loops}};
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
  if (flags.text("--arch") == "") throw InvalidInput("arch", "''", "names no architecture, as sm_90 does");
  std::optional<Case> c;
  if (!case_flags_given(flags).empty() || flags.given("--plan")) c = read_case(flags);
  const Subject subject = read_subject(flags, c);
  refuse_without_plan(flags, subject.is_sm80);
  std::optional<KeyTileInstructions> tile;
  if (c && (subject.is_sm80 || flags.given("--plan")))
    tile = key_tile_instructions(read_plan(flags, *c, read_device(flags)).plan);
  const std::vector<SassFunction> functions =
      read_machine_code(subject.file, subject.parts, flags.text("--arch").value_or(""));

  std::string text;
  Json list = Json::array();
  for (const SassFunction& function : functions) {
    const Audited audited{function, contents_of(function.code)};
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
