#include "attest/problem/file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "attest/problem/error.h"

namespace attest {

namespace fs = std::filesystem;

std::string read_file(std::string_view field, const fs::path& path, std::size_t limit_bytes) {
  std::string name = path.string();
  if (name.size() > 60) name = name.substr(0, 57) + "...";
  name = fmt::format("'{}'", name);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw InvalidInput(field, name, "does not exist");
  if (!fs::is_regular_file(status)) throw InvalidInput(field, name, "is not a regular file");
  const std::uintmax_t size = fs::file_size(path, error);
  if (!error && size > limit_bytes)
    throw InvalidInput(field, name, fmt::format("has {} bytes, more than {}", size, limit_bytes));
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) throw InvalidInput(field, name, fmt::format("cannot be read: {}", std::strerror(errno)));
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) throw EnvironmentError(fmt::format("{}: cannot be read", name));
  return bytes;
}

}  // namespace attest
