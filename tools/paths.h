// What a file is called.
#pragma once
#include <filesystem>

namespace attest::tools {

/// From the root and without links, of a file that may not be there yet; empty where there is none: a link to itself, a
/// folder nobody may enter, a program that was deleted.
std::filesystem::path full_path(const std::filesystem::path& path);

/// Whether both name one file or folder: by device and inode, as hard links do, or, where one is not there yet, by
/// path.
bool are_one(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace attest::tools
