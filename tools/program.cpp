#include "program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attest/fuzz/worker.h"
#include "attest/problem/error.h"
#include "attest/problem/text.h"
#include "output.h"
#include "parse.h"
#include "unfinished.h"

namespace attest::tools {
namespace {

constexpr const char* description =
    "attest verifies FlashAttention kernels against a float64 reference and predicts the memory traffic they cause.";

constexpr const char* footer = R"(Every command takes --json FILE|-. Results go to stdout, progress to stderr.
Exit: 0 pass, 1 the kernel is wrong, 2 usage, 3 environment, 4 the kernel crashed or hung, 5 slower than
before, 77 unsupported, 130 interrupted after saving.

Examples:
  attest fuzz --kernel cpu --time 30s
  attest check --seqlen-q 1 --seqlen-k 4096 --nheads 8 --nheads-k 1 --causal
  attest predict --model llama-3-70b --seqlen 8192 --device h100
)";

// One line, whatever came in from file names, JSON and libraries.
int fail(ExitCode code, std::string_view message) {
  const std::string line = "attest: " + escaped(message) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);  // not fmt::print, which throws where stderr is closed
  return code;
}

class Program {
 public:
  explicit Program(std::span<const Command> commands) : commands_(commands) {
    app_.name("attest");
    app_.description(description);
    app_.footer(footer);
    app_.set_version_flag("--version", "attest " ATTEST_VERSION);
    app_.allow_extras();
    app_.get_formatter()->column_width(26);
    for (const Command& command : commands_) {
      CLI::App* sub = app_.add_subcommand(command.name, command.summary);
      sub->allow_extras();
      sub->footer("Examples:\n" + command.examples + "\n");
      flags_.push_back(std::make_unique<Flags>(*sub));
      command.declare(*flags_.back());
      Results::declare(*flags_.back());
    }
  }

  int run(int argc, const char* const* argv) {
    // to CLI11 this ends a command, and it would pass over it in silence
    for (int k = 1; k < argc; ++k)
      if (std::string_view(argv[k]) == "++") throw InvalidInput("command line", "'++'", "belongs to no flag");
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& help_or_version) {
      return app_.exit(help_or_version);
    } catch (const CLI::ArgumentMismatch& missing) {  // "--batch: 1 required N missing"
      const std::string flag = std::string(missing.what()).substr(0, std::string_view(missing.what()).find(':'));
      throw InvalidInput(field_of(flag), "nothing", fmt::format("follows {}, which takes one value", flag));
    } catch (const CLI::ParseError& error) {
      throw InvalidInput("command line", in_quotes(error.what()), "cannot be read");
    }
    std::vector<std::string> named;
    for (const CLI::App* const command : app_.get_subcommands()) named.push_back(command->get_name());
    if (named.size() > 1)
      throw InvalidInput("command line", fmt::format("'{}' and '{}'", named[0], named[1]), "are commands; one a time");
    if (named.size() == 1 && !app_.remaining().empty())
      throw InvalidInput("command line", in_quotes(app_.remaining()[0]), "belongs to no flag");
    for (std::size_t k = 0; k < commands_.size(); ++k)
      if (app_.got_subcommand(commands_[k].name)) {
        flags_[k]->check();
        return commands_[k].run(*flags_[k]);
      }
    refuse_command();
  }

 private:
  [[noreturn]] void refuse_command() const {
    std::vector<std::string> names;
    for (const Command& command : commands_) names.push_back(command.name);
    const std::vector<std::string> extras = app_.remaining();
    if (extras.empty()) throw InvalidInput("command", "''", fmt::format("is none of {}", fmt::join(names, ", ")));
    const bool is_flag = extras[0].starts_with('-');
    throw InvalidInput(
        is_flag ? "command line" : "command", in_quotes(extras[0]),
        fmt::format("is {}{}; see attest --help", is_flag ? "no flag that stands before a command" : "no command",
                    did_you_mean(extras[0], names)));
  }

  std::span<const Command> commands_;
  CLI::App app_;
  std::vector<std::unique_ptr<Flags>> flags_;
};

}  // namespace

int run_program(std::span<const Command> commands, int argc, const char* const* argv) {
  int code = exit_pass;
  try {
    const EndOnSignals end_on_signals;
    code = Program(commands).run(argc, argv);
  } catch (const InvalidInput& error) {
    return fail(exit_usage, error.what());
  } catch (const KernelCrashed& error) {
    return fail(exit_kernel_crashed, error.what());
  } catch (const KernelLost& error) {  // while check --in-process makes it
    return fail(exit_kernel_crashed, fmt::format("the kernel is lost while it is loaded: {}", error.what()));
  } catch (const EnvironmentError& error) {
    return fail(exit_environment, error.what());
  } catch (const std::bad_alloc&) {
    return fail(exit_environment, "out of memory; a case of fewer batch entries, heads or tokens needs less");
  } catch (const std::exception& error) {
    return fail(exit_environment, fmt::format("a bug in attest, please report it: {}", error.what()));
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return fail(exit_environment, "stdout: cannot be written");
  return code;
}

}  // namespace attest::tools
