// Commands that a user gets wrong: an exit status and one line, and nothing is left behind.
#pragma once
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "run_attest.h"

namespace attest::tools {

struct BadInput {
  std::vector<std::string> arguments;
  int exit_code;
  std::string line;  // of stderr, whole, without "attest: " and the newline
};

inline std::ostream& operator<<(std::ostream& out, const BadInput& bad) {
  for (const std::string& argument : bad.arguments) out << argument << ' ';
  return out;
}

inline void expect_one_line_and_nothing_written(const BadInput& bad) {
  const Folder folder;
  folder.write("truncated.json", R"({"batch": 2,)");
  folder.write("padded.json", std::string("{\"seqlen_q\":7}\0 junk", 20));
  folder.write("beyond.json", R"({"num_sms": 1e400})");
  folder.write("tiny.json", R"({"fields": {"num_sms": {"value": -0.1e-400}}})");
  const Ran ran = run_attest(bad.arguments, folder);
  EXPECT_EQ(ran.exit_code, bad.exit_code);
  EXPECT_EQ(ran.err, "attest: " + bad.line + "\n");
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(folder.files(), (std::vector<std::string>{"beyond.json", "padded.json", "tiny.json", "truncated.json"}));
}

}  // namespace attest::tools
