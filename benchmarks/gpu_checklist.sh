#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks of the GPU path on a host with an NVIDIA GPU, in less than ten minutes:
# docs/gpu.md says what each item shows, and how to read the results.
#
#   benchmarks/gpu_checklist.sh pack               builds here, and fills .gpu-bin/ with all that has to travel
#   benchmarks/gpu_checklist.sh run                there: all items; results go to $OUT or gpu_checklist/
#   benchmarks/gpu_checklist.sh run --dry-run      every item on a CPU, in small sizes: tries the script
#   benchmarks/gpu_checklist.sh run --list         the items; --only ITEM... runs some; --help has more
#
# `run` needs no Bazel, no network and no compiler. It runs in this checkout beside .gpu-bin/, or from a copy of
# .gpu-bin/ alone (.gpu-bin/benchmarks/gpu_checklist.sh run). Its Python is PHALANX_PYTHON, else python3 in PATH;
# it must have the torch that the binaries were built with, safetensors and numpy. The binaries run on its libraries.
#
# Exits with 0 if all items passed, 1 if not, 2 if nothing was run: without a GPU that the job may use, without a Python
# that has torch, or for a wrong argument.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

most_bytes=$((45 << 20))
text_bytes=$((2 << 20))
targets=(
  //trainer
  //tests/models/interfaces:token_loss_gpu_test
  //tests/parity:gpt2_probe
  //tests/trainer/cuda:load_test
  //tests/trainer/data:gpu_batches_test
  //tests/trainer/parallel:backends_test
  //tests/trainer/parallel:device_test
)
usage() {
  sed -nE '/^#   benchmarks/s/^# *//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

binary_of() {
  local label=${1#//}
  local name=${label##*[:/]}
  echo "bazel-bin/${label%%:*}/$name"
}

pack() {
  cd "$root"
  ./bazelw build "${targets[@]}" >&2
  # What `run` reads beside the binaries.
  local files=(
    benchmarks/gpu_checklist.sh
    benchmarks/gpu/*.py
    configs/quickstart.yaml
    tests/parity/python_peer.py
    tests/parity/trainer_parity.py
  )
  local new target file
  new=$(mktemp -d .gpu-bin.XXXXXX)
  # shellcheck disable=SC2064  # now: the name is local
  trap "rm -rf '$root/$new'" EXIT
  mkdir "$new/bin"
  for target in "${targets[@]}"; do
    file=$(binary_of "$target")
    # The names of functions stay: compute-sanitizer tells them.
    strip --strip-debug -o "$new/bin/${file##*/}" "$file"
  done
  # The CUDA part needs no file: the build has put it into each binary.
  cp --parents "${files[@]}" "$new"
  # Something that is here, and long enough for a minute of training without a second epoch.
  cat docs/*.md trainer/*/*.{h,cc} trainer/*/*/*.{h,cc} | head -c "$text_bytes" >"$new/text" || true
  rm -rf .gpu-bin
  mv "$new" .gpu-bin
  trap - EXIT
  chmod 755 .gpu-bin
  local bytes
  bytes=$(du -sb .gpu-bin | cut -f1)
  du -b .gpu-bin/bin/* .gpu-bin/text
  echo "$bytes	.gpu-bin"
  if ((bytes > most_bytes)); then
    echo "gpu_checklist: .gpu-bin has $bytes bytes, more than $most_bytes" >&2
    exit 1
  fi
}

run() {
  local python=${PHALANX_PYTHON:-python3}
  if ! command -v "$python" >/dev/null; then
    echo "gpu_checklist: there is no $python: set PHALANX_PYTHON to a Python that has torch" >&2
    exit 2
  fi
  exec "$python" "$root/benchmarks/gpu/checklist.py" "$@"
}

case ${1:-} in
  pack) (($# == 1)) || usage; pack ;;
  run) shift; run "$@" ;;
  *) usage ;;
esac
