# SPDX-License-Identifier: Apache-2.0
"""The same model in plain Python, as torch is shipped or with the matrix products that Phalanx takes."""

import json
import subprocess
from pathlib import Path

from cases import BETAS, LEARNING_RATE, UNREACHED, WEIGHT_DECAY, measured_steps
from measure import WARM_UP_STEPS, measure

PARITY = Path(__file__).resolve().parent.parent / "tests/parity"
# MKL asks the function of this name whether the CPU is Intel's (docs/compute.md).
ANSWER = "int mkl_serv_intel_cpu_true(void) { return 1; }\n"


def answering_library(folder):
    """A library that, preloaded, has Python's MKL take the kernels that `compute.gemm: mkl` takes."""
    source, library = folder / "answer.c", folder / "answer.so"
    source.write_text(ANSWER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def model_options(case, device, text, log):
    """Those of python_peer's command line."""
    options = {
        "text": text,
        "losses": log,
        "layers": case.layers,
        "heads": case.heads,
        "width": case.width,
        "vocabulary": case.vocabulary,
        "context": case.context,
        "batch-size": case.batch_size,
        "steps": UNREACHED,
        "lr": LEARNING_RATE,
        "beta2": BETAS[1],
        "weight-decay": WEIGHT_DECAY,
        "device": device,
        "precision": {"": "fp32", "bfloat16": "bf16"}[case.precision],
    }
    return [f"--{k}={v}" for k, v in options.items()]


def command_of(python, case, device, text, log):
    arguments = model_options(case, device, text, log)
    if case.ranks == 1:
        return [python, str(PARITY / "python_peer.py"), *arguments]
    torchrun = [python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={case.ranks}"]
    if not case.strategy:
        return [*torchrun, str(PARITY / "ddp_peer.py"), *arguments, "{}"]
    choice = json.dumps({"version": case.version, "strategy": case.strategy})
    return [*torchrun, str(PARITY / "fsdp_peer.py"), *arguments, choice]


def run_python(python, case, device, text, folder, environment):
    log = folder / "losses.jsonl"
    command = command_of(python, case, device, text, log)
    if case.ranks > 1:
        log = folder / "losses.jsonl.0"
    steps = measured_steps(case, device)
    return measure(command, environment, folder, log, steps + WARM_UP_STEPS, dict)
