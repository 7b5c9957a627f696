#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is to be checked wherever there is an NVIDIA GPU: that the CUDA part loads and answers, that
# training on it equals Python's, on several GPUs through NCCL too, and how fast both are.
#
#   benchmarks/gpu_checklist.sh [FOLDER]            builds here; tables and log go to FOLDER
#   BINARIES=DIR PYTHON=PYTHON benchmarks/gpu_checklist.sh [FOLDER]
#
# The second form needs neither Bazel nor a network: DIR holds trainer, gpt2_probe, load_test,
# device_test and gpu_batches_test, built elsewhere from the same commit, and PYTHON is one that imports torch 2.11.0 for
# CUDA 13.0 and safetensors; the binaries then run on that torch's libraries. The text to train on is
# Debian's /usr/share/common-licenses.
#
# Ends with "N passed, N failed"; exits with 0, 1 after a failure, 2 where there is no GPU.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$(mkdir -p "${1:-gpu_checklist}" && cd "${1:-gpu_checklist}" && pwd) || exit 1
passed=0 failed=0

if ! nvidia-smi -L 2>/dev/null; then
  echo "no NVIDIA GPU on this host (nvidia-smi finds none): there is nothing to check" >&2
  exit 2
fi
exec > >(tee "$out/log") 2>&1

if [[ -n ${BINARIES:-} ]]; then
  python=${PYTHON:?goes with BINARIES}
  python_path=
  binaries=$(cd "$BINARIES" && pwd)
else
  ./bazelw build //trainer //tests/parity:gpt2_probe //tests/trainer/cuda:load_test \
    //tests/trainer/parallel:device_test //tests/trainer/data:gpu_batches_test @peers//:python_path.txt || exit 1
  binaries=$(mktemp -d)
  trap 'rm -rf "$binaries"' EXIT
  cp bazel-bin/trainer/trainer bazel-bin/tests/parity/gpt2_probe \
    bazel-bin/tests/trainer/cuda/load_test bazel-bin/tests/trainer/parallel/device_test \
    bazel-bin/tests/trainer/data/gpu_batches_test "$binaries" || exit 1
  python=/usr/bin/python3
  python_path=$(<"$(./bazelw info output_base)/external/peers/python_path.txt")
fi
export PYTHONPATH=$python_path:$PWD:$PWD/tests/parity
torch=$("$python" -c 'import os, torch; print(os.path.dirname(torch.__file__))') || exit 1
export LD_LIBRARY_PATH=$torch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
gpus=$("$python" -c 'import torch; print(torch.cuda.device_count())') || exit 1  # those to be used

check() {
  local name=$1
  shift
  echo "== $name"
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
  fi
}

# Trains, ends, and goes on from its checkpoint, with saves in the background (pinned host memory).
quickstart() {
  local run=$out/quickstart
  rm -rf "$run"
  "$binaries/trainer" configs/quickstart.yaml parallel.device=cuda launcher.processes="$1" \
    exp_dir="$run" training.max_steps=40 &&
    "$binaries/trainer" configs/quickstart.yaml parallel.device=cuda launcher.processes="$1" \
      exp_dir="$run" training.max_steps=80 checkpoint.async=true checkpoint.save_every_n_steps=10 &&
    "$binaries/trainer" checkpoint verify "$run" &&
    "$binaries/trainer" evaluate "$run"
}

parity() {
  "$python" "tests/parity/$1.py" "$binaries/trainer" "$binaries/gpt2_probe" \
    "tests/parity/$2.py" cuda
}

# Shards, gradients and the optimizer on the host: the same losses, and less of the GPU's memory.
offload() {
  local side
  for side in false true; do
    rm -rf "$out/offload-$side"
    "$binaries/trainer" configs/quickstart.yaml parallel.device=cuda launcher.processes=2 \
      parallel.use_fsdp=true parallel.sharding_strategy=FULL_SHARD parallel.cpu_offload=$side \
      exp_dir="$out/offload-$side" training.max_steps=20 logging.every_n_steps=1 || return
  done
  "$python" - "$out"/offload-{false,true}/logs/metrics.jsonl <<'END'
import json, sys
plain, offloaded = ([json.loads(line) for line in open(path)] for path in sys.argv[1:])
losses = [[row["loss"] for row in rows if "loss" in row] for rows in (plain, offloaded)]
assert losses[0] and len(losses[0]) == len(losses[1])
worst = max(abs(a - b) / abs(a) for a, b in zip(*losses))
print(f"losses differ by {worst:.1e} at most")
assert worst <= 1e-5  # the optimizer's kernels differ
END
}

cases=(small 124m)
check "the CUDA part" "$binaries/load_test"
check "devices" "$binaries/device_test"
check "batches" "$binaries/gpu_batches_test"
check "quickstart on one GPU" quickstart 1
# With dropout: also the GPU's generator goes on where it was.
check "resume, bit for bit" "$python" tests/end_to_end/train_test.py "$binaries/trainer"
check "parity on one GPU" parity trainer_parity python_peer
if ((gpus > 1)); then
  cases+=(small-ddp 124m-ddp small-full-2 124m-full-1 124m-full-2 124m-grad-1 124m-grad-2)
  check "quickstart on two GPUs" quickstart 2
  check "parity of DDP through NCCL" parity ddp_parity ddp_peer
  check "parity of FSDP through NCCL" parity fsdp_parity fsdp_peer
  check "offloading to the host" offload
else
  echo "SKIPPED: DDP and FSDP through NCCL need two GPUs, this host has one"
fi
benchmark() {
  "$python" benchmarks/run --device cuda --rounds 5 --cases "${cases[@]}" \
    --trainer "$binaries/trainer" --python "$python" --python-path "$python_path" &&
    cp benchmarks/results/*-cuda.* "$out"
}
check "benchmark" benchmark

echo "$passed passed, $failed failed"
((failed == 0))
