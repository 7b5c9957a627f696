# The Debian packages that building, testing and linting need, and how to get them. To be sourced.

build_packages=(
  bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto bazel-skylib
  ca-certificates g++ python3 python3-pip python3-setuptools python3-wheel
  python3-jsonschema python3-yaml
  libfmt-dev libgmock-dev libgtest-dev libssl-dev libxxhash-dev libyaml-cpp-dev nlohmann-json3-dev
)
lint_packages=(clang-format clang-tidy)
fuzz_packages=(clang-14 libclang-rt-14-dev)

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
# Otherwise prints the line to hand to an administrator and exits 2.
require_debian_packages() {
  if ! command -v dpkg-query >/dev/null || [[ $(uname -m) != x86_64 ]]; then
    echo "phalanx: this is no x86-64 Debian; Phalanx is built with Debian 12's own packages." >&2
    exit 2
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
