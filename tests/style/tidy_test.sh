#!/usr/bin/env bash
# tidy_test.sh BUILD_DIR [FILE...]: clang-tidy's checks of .clang-tidy on the .cpp files of the libraries and the
# program, as they were compiled in BUILD_DIR. The tests themselves are left out: gtest's macros are most of what
# clang-tidy would read, and minutes.
set -euo pipefail
build=$1
shift
tidy=$(command -v clang-tidy-22 || command -v clang-tidy) || exit 77  # 22 leaves system headers alone: minutes
[[ -f $build/compile_commands.json ]] || { echo "$build/compile_commands.json is missing"; exit 1; }

if (($# > 0)); then
  files=("$@")
else
  mapfile -t files < <(sed -n 's|^ *"file": "'"$PWD"'/\(.*\)",\?$|\1|p' "$build/compile_commands.json" |
    grep -E '^(reference|gpu|simulator|fuzz|tools)/.*\.cpp$' | sort -u)
fi
((${#files[@]} > 0)) || { echo "no files found"; exit 1; }
echo "${#files[@]} files, $("$tidy" --version | grep -o 'LLVM version .*')"

# clang has no omp.h without LLVM's own OpenMP and cannot read g++'s, so it gets the few declarations that we use.
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
cat > "$headers/omp.h" << 'END'
extern "C" {
int omp_get_max_threads();
int omp_get_num_procs();
int omp_get_num_threads();
int omp_get_thread_num();
void omp_set_num_threads(int);
double omp_get_wtime();
}
END

printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" "$tidy" -p "$build" --quiet --extra-arg="-isystem$headers" \
  --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-pass-failed \
  --extra-arg=-Wno-deprecated-declarations 2> >(grep -v 'warnings generated\|^Suppressed' >&2)
