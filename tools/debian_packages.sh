# SPDX-License-Identifier: Apache-2.0
# The Debian packages that building, testing and linting need, and how to get them. To be sourced.
#
# On Debian 12 they are installed. On another Linux nothing is: one message says what is needed, and the
# command goes on with what is there.

build_packages=(
  bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto bazel-skylib
  ca-certificates g++ python3 python3-pip python3-setuptools python3-wheel
  python3-jsonschema python3-yaml
  libfmt-dev libgmock-dev libgtest-dev libhwloc-dev libpcre2-dev libssl-dev libutf8proc-dev libxxhash-dev
  libyaml-cpp-dev libzstd-dev nlohmann-json3-dev zlib1g-dev
)
lint_packages=(clang-format clang-tidy)
fuzz_packages=(clang-14 libclang-rt-14-dev)
launcher_packages=(iproute2 mpich openmpi-bin openssh-client openssh-server shellcheck slurm-client slurmctld slurmd)

# For each package: the command, the file or the Python module that is used of it, and what for.
declare -A package_uses=(
  [bazel-bootstrap]="bazel: Bazel 4.2 or later that reads WORKSPACE files; BAZEL=/path/to/bazel names another"
  [bazel-platforms]="/usr/share/bazel/tools/platforms: rules of Bazel's own"
  [bazel-rules-java]="/usr/share/bazel/rules/java: rules of Bazel's own"
  [bazel-rules-proto]="/usr/share/bazel/rules/proto: rules of Bazel's own"
  [bazel-skylib]="/usr/share/bazel/tools/skylib: rules of Bazel's own"
  [ca-certificates]="/etc/ssl/certs: downloads of wheels"
  [g++]="g++: g++ 12 or later, with C++20 and libstdc++"
  [python3]="/usr/bin/python3: Python 3.10 or later; the tests that compare with PyTorch need 3.11"
  [python3-pip]="import pip: installs the wheels"
  [python3-setuptools]="import setuptools: builds one of the packages that tests compare with"
  [python3-wheel]="import wheel: the same"
  [python3-jsonschema]="import jsonschema: tests"
  [python3-yaml]="import yaml: tests"
  [libfmt-dev]="/usr/include/fmt/format-inl.h: fmt 9"
  [libgmock-dev]="/usr/lib/x86_64-linux-gnu/libgmock_main.a: tests; headers in /usr/include/gmock"
  [libgtest-dev]="/usr/lib/x86_64-linux-gnu/libgtest.a: tests; headers in /usr/include/gtest"
  [libhwloc-dev]="/usr/lib/x86_64-linux-gnu/libhwloc.a: cores and NUMA nodes; headers in /usr/include/hwloc"
  [libpcre2-dev]="/usr/lib/x86_64-linux-gnu/libpcre2-8.a: the patterns of tokenizers; its header is /usr/include/pcre2.h"
  [libssl-dev]="/usr/lib/x86_64-linux-gnu/libcrypto.a: SHA-256; headers in /usr/include/openssl"
  [libutf8proc-dev]="/usr/lib/x86_64-linux-gnu/libutf8proc.a: Unicode of tokenizers; its header is /usr/include/utf8proc.h"
  [libxxhash-dev]="/usr/include/xxhash.h: checksums"
  [libyaml-cpp-dev]="/usr/lib/x86_64-linux-gnu/libyaml-cpp.a: configs; headers in /usr/include/yaml-cpp"
  [libzstd-dev]="/usr/lib/x86_64-linux-gnu/libzstd.a: texts in .zst; its header is /usr/include/zstd.h"
  [nlohmann-json3-dev]="/usr/include/nlohmann/json.hpp: JSON"
  [zlib1g-dev]="/usr/lib/x86_64-linux-gnu/libz.a: texts in .gz; its headers are /usr/include/z*.h"
  [clang-format]="clang-format: tools/format, with version 14"
  [clang-tidy]="clang-tidy: tools/lint, with version 14"
  [clang-14]="clang++-14: tools/fuzz"
  [libclang-rt-14-dev]="/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux: tools/fuzz, the libraries of its sanitizers"
  [iproute2]="/usr/sbin/ip: tests/launchers, of two hosts"
  [mpich]="mpirun.mpich: tests/launchers"
  [openmpi-bin]="mpirun.openmpi: tests/launchers"
  [openssh-client]="ssh: tests/launchers, of --hostfile; and what --hostfile runs"
  [openssh-server]="/usr/sbin/sshd: tests/launchers, of --hostfile"
  [shellcheck]="shellcheck: tests/launchers, of the scripts of jobs"
  [slurm-client]="srun: tests/launchers"
  [slurmctld]="/usr/sbin/slurmctld: tests/launchers"
  [slurmd]="/usr/sbin/slurmd: tests/launchers"
)

os_release=/etc/os-release

# A value of the system's os-release file, or nothing.
os_release_value() {
  [[ ! -r $os_release ]] || (source "$os_release" && echo "${!1:-}")
}

is_debian_12() {
  [[ $(os_release_value ID) == debian && $(os_release_value VERSION_ID) == 12 ]]
}

# LibTorch's pinned wheels and the paths of Debian's libraries are for nothing else.
require_x86_64_linux() {
  local machine
  machine=$(uname -sm)
  if [[ $machine != "Linux x86_64" ]]; then
    echo "phalanx: this machine is $machine; Phalanx builds on Linux x86_64 only: the pinned wheels of LibTorch" \
      "and the paths in third_party/dependencies.bzl are for it." >&2
    exit 2
  fi
}

# Whether what is used of a package is there.
has_use_of() {
  local used=${package_uses[$1]%%: *}
  case $used in
    /*) [[ -e $used ]] ;;
    bazel) command -v "${BAZEL:-bazel}" || command -v bazelisk ;;
    import\ *) /usr/bin/python3 -c "$used" 2>/dev/null ;;
    *) command -v "$used" ;;
  esac >/dev/null
}

# Says on any system but Debian 12 what Phalanx needs: once, also where a script runs others.
explain_other_system() {
  [[ -z ${PHALANX_NEEDS_EXPLAINED:-} ]] || return 0
  ! is_debian_12 || return 0
  export PHALANX_NEEDS_EXPLAINED=1
  local name package state
  name=$(os_release_value PRETTY_NAME)
  {
    echo "phalanx: this is ${name:-an unknown Linux}, not Debian 12: no package is installed here, and the command goes on"
    echo "with what is there. Phalanx needs, by the names of Debian 12's packages:"
    for package in "${build_packages[@]}" "${lint_packages[@]}" "${fuzz_packages[@]}" \
      "${launcher_packages[@]}"; do
      state=
      has_use_of "$package" || state="NOT FOUND: "
      printf '  %-20s %s%s\n' "$package" "$state" "${package_uses[$package]}"
    done
    echo "Libraries that lie elsewhere: third_party/dependencies.bzl names their paths."
    echo "LibTorch comes as wheels into the per-user cache, by pip of any /usr/bin/python3; PHALANX_TORCH names an"
    echo "installed one. PHALANX_SKIP_PEERS=1 leaves out the tests that need Python 3.11 as /usr/bin/python3."
  } >&2
}

# Prints those of the given packages that are not installed.
missing_debian_packages() {
  local installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null) || true
  local package
  for package in "$@"; do
    [[ $'\n'$installed$'\n' == *$'\n'"installed $package"$'\n'* ]] || echo "$package"
  done
}

# Installs those of the given packages that are missing, as root or through sudo without a password.
# Otherwise prints the line to hand to an administrator and exits 2. Off Debian 12 it installs nothing.
require_debian_packages() {
  require_x86_64_linux
  if ! is_debian_12; then
    explain_other_system
    return 0
  fi
  local missing
  mapfile -t missing < <(missing_debian_packages "$@")
  ((${#missing[@]})) || return 0
  local as_root=()
  if (($(id -u) != 0)); then
    if ! sudo -n true 2>/dev/null; then
      echo "phalanx: Debian packages are missing; ask an administrator to run this line, then try again:" >&2
      echo "apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
      exit 2
    fi
    as_root=(sudo -n)
  fi
  echo "phalanx: installing Debian packages: ${missing[*]}" >&2
  local apt_get=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
  if ! { run_with_progress "${apt_get[@]}" update &&
    run_with_progress "${apt_get[@]}" install -y --no-install-recommends "${missing[@]}"; }; then
    echo "phalanx: apt-get failed; mend what it says above and run the same command again." >&2
    exit 1
  fi
}

# Runs a command that prints much: every five seconds one line shows its newest, and a failure the last
# twenty.
run_with_progress() {
  local output result=0
  output=$(mktemp)
  "$@" >"$output" 2>&1 </dev/null &
  local command=$!
  while ! timeout 5 tail -s 0.1 --pid="$command" -f /dev/null; do
    echo "phalanx: $(tail -n 1 "$output")" >&2
  done
  wait "$command" || result=$?
  ((result == 0)) || tail -n 20 "$output" >&2
  rm -f "$output"
  return "$result"
}
