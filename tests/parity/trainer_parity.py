# SPDX-License-Identifier: Apache-2.0
"""Trains with the real trainer and with plain PyTorch, from the same weights on the same text.

Losses, gradient norms, learning rates and final weights must be the same bits: both call the same
operators in the same order. In fp64, where the trainer's limit is 1e-12, the same is asked.
With a last argument `cuda` both train on a GPU, where some kernels add in no fixed order: LIMITS.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

STEPS = 50
SEED = 3
DEVICE = "cpu"
# The largest differences: relative for what is logged, absolute for weights.
EQUAL = {"log": 0, "weights": 0}
LIMITS = {
    "cpu": {"single": EQUAL, "double": EQUAL},
    "cuda": {
        "single": {"log": 1e-4, "weights": 1e-3},
        "double": {"log": 1e-10, "weights": 1e-9},
    },
}


def limits(double):
    return LIMITS[DEVICE]["double" if double else "single"]
SIZES = {"vocabulary": 256, "context": 32, "width": 48, "layers": 3, "heads": 4}
# An epoch is 34 micro-batches of 4 samples and one of 1: eleven steps of 3 micro-batches and one of
# 2, unequal ones. 50 steps see five epochs.
BATCH_SIZE, ACCUMULATION, SAMPLES = 4, 3, 137

# label: optimizer of the trainer, options of the peer, training section, lr_scheduler
CASES = {
    "sgd, norm clipped": (
        {"name": "sgd", "lr": 0.3, "momentum": 0.9, "weight_decay": 0.01},
        {"clip_grad_norm": 0.5},
        {"name": "constant"},
    ),
    "adam, values clipped": (
        {"name": "adam", "lr": 3e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01},
        {"clip_grad_value": 1e-3},
        {"name": "cosine", "warmup_steps": 7},
    ),
    "adamw, norm clipped": (
        {"name": "adamw", "lr": 3e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1},
        {"clip_grad_norm": 0.5},
        {"name": "cosine", "warmup_steps": 7},
    ),
    "adamw, norm clipped, fp64": (
        {"name": "adamw", "lr": 3e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1},
        {"clip_grad_norm": 0.5},
        {"name": "constant", "warmup_steps": 3},
    ),
}


def write_text(path):
    """Words in random order, as many bytes as give SAMPLES samples beside the validation part."""
    words = ["rank", "step", "batch", "shard", "gather", "reduce", "loss", "norm", "ring", "tree"]
    draw = random.Random(0)
    text = " ".join(draw.choice(words) for _ in range(3000)).encode()
    training_bytes = SAMPLES * SIZES["context"] + 1
    validation_bytes = training_bytes // 9  # a tenth of the whole
    path.write_bytes(text[: training_bytes + validation_bytes])


def trainer_config(folder, optimizer, clipping, schedule, double):
    return {
        "name": "supervised",
        "exp_dir": str(folder / "run"),
        "use_double_weight_precision": double,
        "task": {
            "name": "language_modeling",
            "data": {
                "path": str(folder / "text"),
                "validation_fraction": 0.1,
                "sequence_length": SIZES["context"],
                "loader": {"num_workers": 2},
            },
            "sample": {"tokens": 0},
        },
        "model": {
            "name": "gpt2",
            "vocab_size": SIZES["vocabulary"],
            "n_positions": SIZES["context"],
            "n_embd": SIZES["width"],
            "n_layer": SIZES["layers"],
            "n_head": SIZES["heads"],
            "embd_pdrop": 0,
            "attn_pdrop": 0,
            "resid_pdrop": 0,
        },
        "optimizer": optimizer,
        "lr_scheduler": schedule,
        "training": {
            "max_steps": STEPS,
            "batch_size": BATCH_SIZE,
            "gradient_accumulation_steps": ACCUMULATION,
            "seed": SEED,
            **clipping,
        },
        "validation": {"every_n_steps": 7},  # must leave training as it is
        "checkpoint": {"save_every_n_steps": None},
        "parallel": {"device": DEVICE},
        "logging": {"every_n_steps": 1, "sinks": ["jsonl"]},
    }


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, f"{command[0]}: {result.returncode}\n{result.stdout}{result.stderr}"


def run_trainer(trainer, folder, config):
    """Rows of the log and the weights of the last checkpoint."""
    (folder / "config.yaml").write_text(json.dumps(config, indent=1))
    run([trainer, str(folder / "config.yaml")])
    lines = (folder / "run/logs/metrics.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["phase"] == "train"]
    weights = {}
    for file in (folder / f"run/checkpoints/step-{STEPS:08d}").glob("model*.safetensors"):
        weights |= load_file(file)
    return rows, weights


def peer_arguments(folder, initial_weights, optimizer, double, **more):
    """python_peer's options for what trainer_config gives the trainer."""
    options = {
        **SIZES,
        "text": folder / "text",
        "losses": folder / "losses",
        "initial-weights": initial_weights,
        "final-weights": folder / "final",
        "batch-size": BATCH_SIZE,
        "accumulation": ACCUMULATION,
        "validation-fraction": 0.1,
        "steps": STEPS,
        "seed": SEED,
        "optimizer": optimizer["name"],
        "lr": optimizer["lr"],
        "beta2": optimizer.get("betas", [0, 0.999])[1],
        "weight-decay": optimizer["weight_decay"],
        "eps": optimizer.get("eps", 1e-8),
        "device": DEVICE,
        **more,
    }
    arguments = [f"--{k}={v}" for k, v in options.items() if v is not None]
    return arguments + (["--double"] if double else [])


def run_peer(peer, folder, arguments):
    run([sys.executable, peer, *arguments])
    rows = [json.loads(line) for line in (folder / "losses").read_text().splitlines()]
    return rows, load_file(folder / "final")


def make_initial_weights(probe, folder):
    """What the trainer starts from at this seed; the probe takes the sizes from a file."""
    width = SIZES["width"]
    shapes = {
        "wte.weight": (SIZES["vocabulary"], width),
        "wpe.weight": (SIZES["context"], width),
        "h.0.mlp.c_fc.weight": (width, 4 * width),
    } | {f"h.{i}.ln_1.weight": (width,) for i in range(SIZES["layers"])}
    save_file({name: torch.empty(shape) for name, shape in shapes.items()}, folder / "shapes")
    path = folder / "initial"
    run([probe, "initial", str(path), str(SIZES["heads"]), str(folder / "shapes"), str(SEED)])
    return path


def largest(differences):
    """The largest; NaN if one is: max() passes it over, and so would a limit."""
    differences = list(differences)
    return math.nan if any(map(math.isnan, differences)) else max(differences)


def largest_difference(found, expected):
    assert len(found) == len(expected), (len(found), len(expected))
    return largest(abs(a - b) / max(abs(b), 1e-30) for a, b in zip(found, expected))


def compare(label, found, expected):
    (found_rows, found_weights), (expected_rows, expected_weights) = found, expected
    assert [row["step"] for row in found_rows] == list(range(1, STEPS + 1))
    differences = {}
    for field in ("loss", "grad_norm", "lr"):
        values = [row[field] for row in expected_rows]
        if values[0] is not None:
            differences[field] = largest_difference([row[field] for row in found_rows], values)
    assert found_weights.keys() == expected_weights.keys()
    differences["weights"] = largest(
        (found_weights[n] - expected_weights[n]).abs().max().item() for n in expected_weights
    )
    first, last = found_rows[0]["loss"], found_rows[-1]["loss"]
    print(f"{label}: loss {first:.4f} to {last:.4f}; differences {differences}")
    assert last < 0.9 * first, "it did not learn: nothing is compared"
    within = limits(label.endswith("fp64"))
    assert differences.pop("weights") <= within["weights"], "weights"
    assert differences.pop("lr") == 0, "the learning rate"
    assert all(difference <= within["log"] for difference in differences.values()), differences
    assert all(
        found_weights[n].dtype == expected_weights[n].dtype for n in expected_weights
    ), "dtypes differ"


def arguments():
    """The files; sets the device."""
    global DEVICE
    DEVICE = sys.argv[4] if len(sys.argv) > 4 else DEVICE
    return (str(Path(argument).resolve()) for argument in sys.argv[1:4])


def main():
    trainer, probe, peer = arguments()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as name:
        initial_weights = make_initial_weights(probe, Path(name))
        for number, (label, case) in enumerate(CASES.items()):
            folder = Path(name) / str(number)
            folder.mkdir()
            write_text(folder / "text")
            double = label.endswith("fp64")
            found = run_trainer(trainer, folder, trainer_config(folder, *case, double))
            optimizer, clipping, schedule = case
            options = {
                "schedule": schedule["name"],
                "warmup-steps": schedule.get("warmup_steps", 0),
                "clip-norm": clipping.get("clip_grad_norm"),
                "clip-value": clipping.get("clip_grad_value"),
            }
            expected = run_peer(
                peer, folder,
                peer_arguments(folder, initial_weights, optimizer, double, **options))
            compare(label, found, expected)


if __name__ == "__main__":
    main()
