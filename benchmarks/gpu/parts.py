# SPDX-License-Identifier: Apache-2.0
"""Unit tests that need a GPU: the CUDA part, devices, batches in pinned memory, the loss of tokens."""

import functools
import re

from outcome import require
from runner import Item

SECONDS = 40
TESTS = {
    "load_test": "the CUDA part loads and answers",
    "device_test": "a rank takes its GPU",
    "gpu_batches_test": "batches come through pinned memory on a stream of their own",
    "backends_test": "Gloo can take the place of NCCL",
    "token_loss_gpu_test": "the loss of tokens is near float64's in each precision",
}


def run(test, kit, report):
    output = kit.run([kit.program(test)])
    counted = {word.lower(): len(re.findall(rf"^\[ *{word} *\] \w+\.\w+ \(", output, re.MULTILINE))
               for word in ("OK", "SKIPPED")}
    report.note(**counted)
    require(counted["ok"] > 0, "no test ran")
    require(kit.is_dry or "no NVIDIA GPU on this host" not in output, "it sees no GPU")


ITEMS = [Item(f"parts.{test.replace('_', '-')}", meaning, 30, functools.partial(run, test))
         for test, meaning in TESTS.items()]
