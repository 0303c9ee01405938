// Runs the program as a user does, in a folder of its own.
#pragma once
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

namespace attest::tools {

struct Ran {
  int exit_code = -1;  // 128 + signal if one ended it
  std::string out, err;
  double peak_mib = 0;  // resident
};

/// An empty folder, removed with everything in it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Every file below, relative and sorted.
  std::vector<std::string> files() const;
  void write(const std::string& name, const std::string& bytes) const;
  std::string read(const std::string& name) const;

 private:
  std::filesystem::path path_;
};

/// What is done to a run.
struct Conduct {
  double signal_seconds = 0;  // after which its process group gets `signal`, as from a terminal; 0: never
  int signal = SIGINT;
  bool closed_stderr = false;
  const char* program = ATTEST_PROGRAM;
};

/// `attest arguments...` with `folder` as its working directory and nothing on stdin.
Ran run_attest(const std::vector<std::string>& arguments, const Folder& folder, const Conduct& conduct = {});

/// The words of a line without quotes, such as command_line() prints.
std::vector<std::string> words(const std::string& line);

}  // namespace attest::tools
