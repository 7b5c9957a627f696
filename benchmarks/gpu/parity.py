# SPDX-License-Identifier: Apache-2.0
"""Losses and weights beside plain PyTorch on the same device, from the same weights on the same text."""

import functools
import importlib
import sys

from outcome import largest, require
from runner import Item

SECONDS = 65
# The largest relative difference of a loss, and absolute of a weight.
CASES = {"adamw": (1e-4, 1e-3), "fp64": (1e-10, 1e-9), "bf16": (2e-2, 5e-2)}
OPTIMIZER = {"name": "adamw", "lr": 3e-3, "betas": [0.9, 0.95], "eps": 1e-5, "weight_decay": 0.1}


def load_parity(kit):
    """tests/parity's own comparison, for this device."""
    sys.path[:0] = [str(kit.root), str(kit.root / "tests/parity")]
    trainer_parity = importlib.import_module("trainer_parity")
    trainer_parity.STEPS, trainer_parity.DEVICE = kit.size(50, 6), kit.device
    trainer_parity.run = lambda command: kit.run([str(word) for word in command])  # says how a program ended
    return trainer_parity


def compare(name, kit, report):
    parity = load_parity(kit)
    folder = kit.work / f"parity-{name}"
    folder.mkdir()
    parity.write_text(folder / "text")
    weights = parity.make_initial_weights(kit.program("gpt2_probe"), folder)
    is_double = name == "fp64"
    schedule = {"name": "constant"}
    config = parity.trainer_config(folder, OPTIMIZER, {"clip_grad_norm": 0.5}, schedule, is_double)
    options = {"clip-norm": 0.5}
    if name == "bf16":
        config["mixed_precision"] = {"enabled": True, "dtype": "bfloat16"}
        options["precision"] = "bf16"
    found_rows, found = parity.run_trainer(kit.program("trainer"), folder, config)
    arguments = parity.peer_arguments(folder, weights, OPTIMIZER, is_double, **options)
    peer_rows, expected = parity.run_peer(str(kit.root / "tests/parity/python_peer.py"), folder, arguments)
    loss = parity.largest_difference(*([row["loss"] for row in rows] for rows in (found_rows, peer_rows)))
    require(found.keys() == expected.keys(), "the weights have other names")
    weight = largest((found[n] - expected[n]).abs().max().item() for n in expected)
    report.note(losses_differ_by=loss, weights_differ_by=weight, first_loss=found_rows[0]["loss"],
                last_loss=found_rows[-1]["loss"])
    most_loss, most_weight = CASES[name]
    require(loss <= most_loss, f"losses differ by {loss:.1e}, allowed are {most_loss:.0e}")
    require(weight <= most_weight, f"weights differ by {weight:.1e}, allowed are {most_weight:.0e}")


ITEMS = [Item(f"parity.{name}", f"AdamW beside plain PyTorch: {name}", 35, functools.partial(compare, name))
         for name in CASES]
