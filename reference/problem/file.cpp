#include "attest/problem/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "attest/problem/child.h"
#include "attest/problem/error.h"
#include "attest/problem/text.h"

namespace attest {

namespace fs = std::filesystem;

namespace {

std::string short_name(const fs::path& path) { return fmt::format("'{}'", shortened(path.string(), 57)); }

[[noreturn]] void cannot_write(const fs::path& path, int error) {
  throw EnvironmentError(fmt::format("{}: cannot be written: {}", short_name(path), std::strerror(error)));
}

// A new file beside `path`, under a name that no other thread or process uses; deleted unless it was renamed.
class Beside {
 public:
  explicit Beside(const fs::path& path) : target_(path), name_(path) {
    static std::atomic<unsigned> count{0};
    name_ += fmt::format(".part{}.{}", ::getpid(), count++);
    descriptor_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) cannot_write(target_, errno);
  }
  ~Beside() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!renamed_) ::unlink(name_.c_str());
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) cannot_write(target_, errno);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::fsync(descriptor_) != 0) cannot_write(target_, errno);
  }
  void rename() {
    renamed_ = ::rename(name_.c_str(), target_.c_str()) == 0;
    if (!renamed_) cannot_write(target_, errno);
  }

 private:
  fs::path target_, name_;
  int descriptor_ = -1;
  bool renamed_ = false;
};

}  // namespace

void write_file(const fs::path& path, std::string_view bytes) {
  Beside beside(path);
  beside.write(bytes);
  beside.rename();
}

void expect_writable(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) cannot_write(path, EISDIR);  // nothing renames over one
  const Beside beside(path);
}

std::string read_file(std::string_view field, const fs::path& path, std::size_t limit_bytes) {
  const std::string name = short_name(path);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw InvalidInput(field, name, "does not exist");
  if (!fs::is_regular_file(status)) throw InvalidInput(field, name, "is not a regular file");
  const std::uintmax_t size = fs::file_size(path, error);
  if (!error && size > limit_bytes)
    throw InvalidInput(field, name, fmt::format("has {} bytes, more than {}", size, limit_bytes));
  // What is not there yet is not waited for, as in /proc/kmsg.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string bytes;
  std::vector<char> block(1 << 16);
  for (ssize_t got = 1; got != 0;) {
    got = file.get() < 0 ? -1 : ::read(file.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InvalidInput(field, name, fmt::format("cannot be read: {}", std::strerror(errno)));
    bytes.append(block.data(), static_cast<std::size_t>(got));
    if (bytes.size() > limit_bytes)  // files of /proc say that they have none
      throw InvalidInput(field, name, fmt::format("has more than {} bytes", limit_bytes));
  }
  return bytes;
}

}  // namespace attest
