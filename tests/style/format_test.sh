#!/usr/bin/env bash
# Every C++ and CUDA file of ours is as clang-format leaves it.
set -euo pipefail
command -v clang-format > /dev/null || exit 77

# Files that git would track; in an unpacked archive, whatever stands in the source folders.
if git rev-parse --is-inside-work-tree > /dev/null 2>&1; then
  mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.cpp' '*.h' '*.cu' '*.cuh')
else
  mapfile -t files < <(find reference gpu simulator fuzz tools tests bench -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh')
fi
((${#files[@]} > 0)) || { echo "no files found"; exit 1; }
echo "${#files[@]} files, $(clang-format --version)"
clang-format --dry-run -Werror "${files[@]}"
