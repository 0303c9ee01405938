#!/usr/bin/env bash
# Installs what building attest needs on Debian and Ubuntu: tools/setup.sh run|test|slurm. Asks the network only for what is
# missing, so it also works offline once everything is there.
set -euo pipefail

build_packages=(g++ cmake ninja-build libeigen3-dev libfmt-dev nlohmann-json3-dev libcli11-dev librapidcheck-dev libjs-d3 libsqlite3-dev)
test_packages=(libgtest-dev libgmock-dev libbenchmark-dev clang-format clang-tidy python3 python3-torch chromium xz-utils)
# Where it can be had: it leaves system headers alone, and so takes less than half of the time of clang-tidy 14.
wanted_packages=(clang-tidy-22)

case "${1:-}" in
  run) packages=("${build_packages[@]}") wanted_packages=() ;;
  test) packages=("${build_packages[@]}" "${test_packages[@]}") ;;
  slurm) packages=("${build_packages[@]}" slurm-wlm munge python3) wanted_packages=() ;;
  *)
    echo "usage: tools/setup.sh run|test|slurm" >&2
    exit 2
    ;;
esac

if ! command -v apt-get > /dev/null || ! command -v dpkg-query > /dev/null; then
  echo "setup: no apt-get here; the build needs what Debian calls: ${packages[*]}"
  exit 0
fi

not_here() {
  local package status
  for package in "$@"; do
    status=$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2> /dev/null || true)
    [[ $status == ii* ]] || echo "$package"
  done
}
mapfile -t missing < <(not_here "${packages[@]}")
mapfile -t wanted < <(not_here "${wanted_packages[@]}")
if ((${#missing[@]} + ${#wanted[@]} == 0)); then
  echo "setup: every package is here"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo > /dev/null; then
    ((${#missing[@]} > 0)) || exit 0
    echo "setup: missing ${missing[*]}; neither root nor sudo is here to install them" >&2
    exit 3
  fi
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]} ${wanted[*]}"
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@" > /dev/null; }
install() { (($# == 0)) || apt install -y --no-install-recommends "$@"; }
updated=0
apt update || updated=$?
if ((${#missing[@]} > 0)) && ! { ((updated == 0)) && install "${missing[@]}"; }; then
  echo "setup: apt-get could not install ${missing[*]}" >&2
  exit 3
fi
install "${wanted[@]}" || echo "setup: does without ${wanted[*]}"
