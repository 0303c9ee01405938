#include "paths.h"

#include <system_error>

namespace attest::tools {

namespace fs = std::filesystem;

fs::path full_path(const fs::path& path) {
  std::error_code none;
  const fs::path from_root = fs::absolute(path, none);
  return none ? fs::path() : fs::weakly_canonical(from_root, none);
}

bool are_one(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const fs::path full = full_path(a);
  return !full.empty() && full == full_path(b);
}

}  // namespace attest::tools
