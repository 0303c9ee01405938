#include "run_attest.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace attest::tools {
namespace {

namespace fs = std::filesystem;

std::string read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void redirect(const fs::path& path, int descriptor, int flags) {
  const int opened = ::open(path.c_str(), flags, 0600);
  if (opened < 0 || ::dup2(opened, descriptor) < 0) ::_exit(126);
}

}  // namespace

Folder::Folder() {
  std::string name = (fs::temp_directory_path() / "attest_test_XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<std::string> Folder::files() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(path_))
    if (!entry.is_directory()) names.push_back(fs::relative(entry.path(), path_).string());
  std::sort(names.begin(), names.end());
  return names;
}

void Folder::write(const std::string& name, const std::string& bytes) const {
  std::ofstream(path_ / name, std::ios::binary) << bytes;
}

std::string Folder::read(const std::string& name) const { return read_bytes(path_ / name); }

Ran run_attest(const std::vector<std::string>& arguments, const Folder& folder, const Conduct& conduct) {
  const Folder streams;
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    ::setpgid(0, 0);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);  // ignored where who tests ignores it
    redirect("/dev/null", STDIN_FILENO, O_RDONLY);
    redirect(streams.path() / "out", STDOUT_FILENO, O_WRONLY | O_CREAT);
    redirect(streams.path() / "err", STDERR_FILENO, O_WRONLY | O_CREAT);
    if (conduct.closed_stderr) ::close(STDERR_FILENO);
    if (::chdir(folder.path().c_str()) != 0) ::_exit(126);
    std::vector<char*> argv = {const_cast<char*>("attest")};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(conduct.program, argv.data());
    ::_exit(127);
  }
  if (conduct.signal_seconds > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(conduct.signal_seconds));
    ::kill(-child, conduct.signal);
  }
  int status = 0;
  rusage usage{};
  if (::wait4(child, &status, 0, &usage) != child) throw std::runtime_error("cannot wait");
  Ran ran;
  ran.peak_mib = static_cast<double>(usage.ru_maxrss) / 1024;
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ran.out = read_bytes(streams.path() / "out");
  ran.err = read_bytes(streams.path() / "err");
  return ran;
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

}  // namespace attest::tools
