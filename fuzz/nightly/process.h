// What the steps run: other programs and this one, until the night is told to stop.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "attest/fuzz/interrupt.h"
#include "attest/problem/process.h"

namespace attest {

/// run_process(), ended by request_stop() too.
inline Ended run_until_stopped(const std::vector<std::string>& words, double seconds,
                               std::vector<std::pair<std::string, std::string>> environment = {}) {
  return run_process(words, {seconds, std::move(environment), true, stop_requested, nullptr});
}

/// This program with other arguments.
inline Ended run_attest_itself(std::vector<std::string> arguments, double seconds) {
  arguments.insert(arguments.begin(), "/proc/self/exe");
  return run_until_stopped(arguments, seconds);
}

/// The last `most` bytes of it that are whole lines, in one line: for a note.
inline std::string last_words(const std::string& out, std::size_t most = 300) {
  std::string text = out.size() > most ? out.substr(out.find('\n', out.size() - most) + 1) : out;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace attest
