# SPDX-License-Identifier: Apache-2.0
"""What is trained for a benchmark of whole runs, and a trainer's run of it."""

import dataclasses
import json
from pathlib import Path

from measure import WARM_UP_STEPS, measure


@dataclasses.dataclass(frozen=True)
class Case:
    """A model and how it is fed; `steps` are measured, after the warm-up."""

    meaning: str
    layers: int
    width: int
    heads: int
    vocabulary: int
    batch_size: int
    steps: int = 20
    ranks: int = 1
    context: int = 256
    alone: str = ""  # the case that is this one on one rank
    strategy: str = ""  # of FSDP, on both sides
    version: int = 0  # of Python's: 1 is FullyShardedDataParallel, 2 fully_shard
    precision: str = ""  # of autocast, on both sides

    @property
    def flop_per_token(self):
        """FLOP of its matrix products, forward and backward."""
        weights = self.layers * 12 * self.width**2 + self.vocabulary * self.width
        return 6 * weights + 12 * self.layers * self.width * self.context


CASES = {
    "small": Case("6 layers, width 384, T 256, batch 8", 6, 384, 6, 256, 8),
    "124m": Case("GPT-2 124M, T 256, batch 1", 12, 768, 12, 50257, 1),
    "small-ddp": Case("the same on 2 ranks in DDP", 6, 384, 6, 256, 8, ranks=2, alone="small"),
    "124m-ddp": Case("the same on 2 ranks in DDP", 12, 768, 12, 50257, 1, ranks=2, alone="124m"),
    # What the loop costs: hardly anything else is done.
    "tiny": Case("2 layers, width 64, T 16, batch 1", 2, 64, 2, 256, 1, steps=2000, context=16),
}


def sharded(name, strategy, version):
    """A case on 2 ranks, cut over them, beside one of Python's two."""
    python = {1: "FSDP1", 2: "fully_shard"}[version]
    return dataclasses.replace(CASES[name], ranks=2, alone=name, strategy=strategy, version=version,
                               meaning=f"on 2 ranks in {strategy}, beside {python}")


# For CPUs that compute bfloat16 (avx512_bf16, amx_bf16): others convert each product's operands.
CASES |= {
    f"{name}-bf16": dataclasses.replace(CASES[name], precision="bfloat16", steps=8,
                                        meaning="the same with autocast to bfloat16")
    for name in ("small", "124m")
}

CASES |= {
    f"{name}-{short}-{version}": sharded(name, strategy, version)
    for name in ("small", "124m")
    for short, strategy in (("full", "FULL_SHARD"), ("grad", "SHARD_GRAD_OP"))
    for version in (1, 2)
}

# What both sides are asked for.
LEARNING_RATE, BETAS, WEIGHT_DECAY = 6e-4, (0.9, 0.95), 0.1
UNREACHED = 1_000_000


def write_text(path):
    """Text that every Debian has."""
    sources = sorted({p.resolve() for p in Path("/usr/share/common-licenses").iterdir()})
    path.write_bytes(b"".join(source.read_bytes() for source in sources))


def sharding(case):
    return {"use_fsdp": True, "sharding_strategy": case.strategy} if case.strategy else {}


def precision(case):
    return {"mixed_precision": {"enabled": True, "dtype": case.precision}} if case.precision else {}


def trainer_config(case, device, text, run_folder):
    return {
        "name": "supervised",
        "exp_dir": str(run_folder),
        "task": {
            "name": "language_modeling",
            "data": {
                "path": str(text),
                "validation_fraction": 0,
                "sequence_length": case.context,
            },
        },
        "model": {
            "name": "gpt2",
            "vocab_size": case.vocabulary,
            "n_positions": case.context,
            "n_embd": case.width,
            "n_layer": case.layers,
            "n_head": case.heads,
            "embd_pdrop": 0,
            "attn_pdrop": 0,
            "resid_pdrop": 0,
        },
        "optimizer": {
            "name": "adamw",
            "lr": LEARNING_RATE,
            "betas": list(BETAS),
            "weight_decay": WEIGHT_DECAY,
        },
        "lr_scheduler": {"name": "constant"},
        "training": {"max_steps": UNREACHED, "batch_size": case.batch_size},
        "checkpoint": {"save_every_n_steps": None},
        "logging": {"every_n_steps": 1, "sinks": ["jsonl"]},
        "parallel": {"device": device} | sharding(case),
        "launcher": {"processes": case.ranks},
    } | precision(case)


def measured_steps(case, device):
    """A GPU's steps are so short that few of them would measure the clock."""
    return case.steps * (20 if device == "cuda" else 1)


def read_trainer_row(row):
    return {
        "began": row["time"] - row["step_seconds"],
        "ended": row["time"],
        "loss": row["loss"],
    }


def run_trainer(trainer, case, device, text, folder, environment, at_end=None, **limits):
    config = folder / "config.yaml"
    config.write_text(json.dumps(trainer_config(case, device, text, folder / "run")))
    log = folder / "run/logs/metrics.jsonl"
    command = [str(trainer), str(config)]
    steps = measured_steps(case, device)
    return measure(command, environment, folder, log, steps + WARM_UP_STEPS, read_trainer_row, at_end, **limits)
