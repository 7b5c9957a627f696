# SPDX-License-Identifier: Apache-2.0
"""Trains in bfloat16 and float16 with the real trainer and with Python's PyTorch.

A small GPT-2, from the same weights on the same text: autocast on one rank and in DDP,
low-precision copies in FSDP; float16 with a loss scale that begins so high that steps are skipped.

Both call the same operators in the same order, so losses, weights, loss scales and skipped steps
must be the same bits; except for two things in FSDP. Clipping adds up the norm's parts in the order
of each one's shards, and FSDP1 adds up micro-batches in `param`'s precision, not in `reduce`'s.
There the first step must be the same bits and the next ones must agree within the precision's eps;
what rounding makes of that in the end may be LEEWAY times what it makes of runs that are equally
right, the controls: one rank beside two on the same batches, and FSDP1 beside fully_shard. The
curves' difference is that of losses smoothed over 10 steps. Whether a gradient overflows is a threshold,
which rounding may move: where bits may differ, the scale differs no sooner than the losses do, and the
skipped steps by no more than LEEWAY times those of the controls. Ends with a table for the documentation.

With --config=long all cases and 200 steps; otherwise one case a way and precision, 60 steps.
"""

import dataclasses
import math
import os
import resource
import tempfile
import time
from pathlib import Path

import ddp_parity
import trainer_parity as single
from tests.long import is_long, tell_sample

STEPS, EARLY, SMOOTHED = 200 if is_long() else 60, 20, 10
SIZES = {"vocabulary": 256, "context": 16, "width": 32, "layers": 2, "heads": 4}
ADAMW = {"name": "adamw", "lr": 3e-3, "betas": [0.9, 0.95], "eps": 1e-5, "weight_decay": 0.1}
SCALING = {"init_scale": 2.0**24, "growth_factor": 2, "backoff_factor": 0.5, "growth_interval": 20}
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
EPS = {"bf16": 2.0**-8, "fp16": 2.0**-11}
LEEWAY = 3


@dataclasses.dataclass(frozen=True)
class Case:
    precision: str
    way: str  # "one rank", "DDP" or a strategy
    micro_batches: int = 1
    clip: float | None = None
    reduce: str | None = None
    by_section: bool = True  # asked for in `mixed_precision`, else in `parallel.fsdp`
    batch_size: int = single.BATCH_SIZE
    versions: tuple = (1, 2)  # of Python's FSDP

    @property
    def is_sharded(self):
        return self.way.endswith("SHARD")

    @property
    def mesh(self):
        """Ranks, and those that share a copy."""
        return {"one rank": (1, 1), "HYBRID_SHARD": (4, 2)}.get(self.way, (2, 2))

    def __str__(self):
        parts = [self.way, self.precision]
        if self.is_sharded:
            parts.append(f"reduced in {self.reduce or 'the same'}")
        if self.micro_batches > 1:
            parts.append(f"{self.micro_batches} micro-batches")
        return ", ".join(parts + ["clipped"] * bool(self.clip))


ALL = [
    Case("bf16", "one rank"),
    Case("bf16", "one rank", 3),
    Case("fp16", "one rank"),
    Case("fp16", "one rank", 3, clip=0.5),
    Case("bf16", "DDP"),
    Case("fp16", "DDP", 3, clip=0.5),
    Case("bf16", "FULL_SHARD"),
    Case("bf16", "FULL_SHARD", 3, reduce="float32", by_section=False),
    Case("fp16", "FULL_SHARD", versions=(1,)),
    Case("fp16", "FULL_SHARD", 3, clip=0.5),
    Case("bf16", "HYBRID_SHARD", versions=(2,)),
]
# One rank, DDP and sharded, in both precisions.
SAMPLE = [ALL[i] for i in (3, 4, 9)]
CASES = ALL if is_long() else SAMPLE
VERSIONS = {None: "Python", 1: "FSDP1", 2: "fully_shard"}


def is_exact(case, version):
    adds_up_elsewhere = version == 1 and case.micro_batches > 1 and case.reduce
    return not (case.is_sharded and case.clip) and not adds_up_elsewhere


def mixed_config(folder, case):
    ranks, shards = case.mesh
    config = ddp_parity.config_of(folder, ADAMW, {}, ranks, case.micro_batches, False, case.clip)
    config["training"]["batch_size"] = case.batch_size
    config["validation"]["every_n_steps"] = 50  # must leave training as it is
    scaling = SCALING if case.precision == "fp16" else {}
    if case.by_section and case.precision in DTYPES:
        config["mixed_precision"] = {"enabled": True, "dtype": DTYPES[case.precision], **scaling}
    if case.is_sharded:
        precision = {} if case.by_section else {"param": DTYPES[case.precision]}
        precision |= {"reduce": case.reduce} if case.reduce else {}
        config["parallel"] |= {
            "use_fsdp": True,
            "sharding_strategy": case.way,
            "fsdp": {"mixed_precision": precision},
        }
    if case.way == "HYBRID_SHARD":
        config["parallel"]["fsdp"]["shard_group_size"] = shards
    return config


class Runs:
    def __init__(self, trainer, peer, initial_weights, scratch):
        self.trainer, self.peers = trainer, Path(peer).parent
        self.initial_weights, self.scratch = initial_weights, scratch
        self.count = 0

    def folder(self):
        self.count += 1
        folder = self.scratch / str(self.count)
        folder.mkdir()
        single.write_text(folder / "text")
        return folder

    def trained(self, case):
        folder = self.folder()
        return single.run_trainer(self.trainer, folder, mixed_config(folder, case))

    def python(self, case, version=None):
        options = {"precision": case.precision, "init-scale": SCALING["init_scale"],
                   "growth-interval": SCALING["growth_interval"], "batch-size": case.batch_size}
        folder, (ranks, shards) = self.folder(), case.mesh
        if ranks == 1:
            arguments = single.peer_arguments(
                folder, self.initial_weights, ADAMW, False,
                **{"accumulation": case.micro_batches, "clip-norm": case.clip, **options})
            return single.run_peer(self.peers / "python_peer.py", folder, arguments)
        choice = {"version": version, "strategy": case.way, "shards": shards,
                  "reduce": case.reduce} if case.is_sharded else {}
        peer = self.peers / ("fsdp_peer.py" if case.is_sharded else "ddp_peer.py")
        return ddp_parity.run_peers(peer, folder, self.initial_weights, ADAMW, choice, ranks,
                                    case.micro_batches, False, case.clip, **options)


def smooth(values):
    return [sum(values[i : i + SMOOTHED]) / SMOOTHED for i in range(len(values) - SMOOTHED + 1)]


def column(rows, field):
    return [row.get(field) for row in rows]


def first_unequal(found, expected):
    pairs = enumerate(zip(found, expected), start=1)
    return next((step for step, (a, b) in pairs if a != b), None)


@dataclasses.dataclass
class Difference:
    first: int | None  # the first step whose loss differs
    early: float  # relative, of a loss of the first steps
    loss: float
    smoothed: float
    weights: float
    scaling: list  # scales and skipped steps at the end, of both
    skipped: int  # so many steps more on one side
    scaling_differs: int | None  # the first step

    def __str__(self):
        numbers = [self.early, self.loss, self.smoothed, self.weights]
        values = [str(self.first or "none"), *(f"{n:.1e}" if n else "0" for n in numbers),
                  " / ".join(dict.fromkeys(self.scaling))]
        return " | ".join(values)


def scaling_of(rows):
    if rows[-1].get("loss_scale") is None:
        return "-"
    return f"{rows[-1]['skipped_steps']}, 2^{math.log2(rows[-1]['loss_scale']):g}"


def difference(label, found, expected):
    (found_rows, found_weights), (expected_rows, expected_weights) = found, expected
    losses = [column(rows, "loss") for rows in (found_rows, expected_rows)]
    assert found_weights.keys() == expected_weights.keys()
    assert all(found_weights[n].dtype == expected_weights[n].dtype for n in expected_weights)
    result = Difference(
        first=first_unequal(*losses),
        early=single.largest_difference(*(column[:EARLY] for column in losses)),
        loss=single.largest_difference(*losses),
        smoothed=single.largest_difference(*map(smooth, losses)),
        weights=max((found_weights[n] - expected_weights[n]).abs().max().item()
                    for n in expected_weights),
        scaling=[scaling_of(found_rows), scaling_of(expected_rows)],
        skipped=abs(found_rows[-1].get("skipped_steps", 0) - expected_rows[-1].get("skipped_steps", 0)),
        scaling_differs=first_unequal(*(
            list(zip(column(rows, "loss_scale"), column(rows, "skipped_steps")))
            for rows in (found_rows, expected_rows))))
    print(f"{label}: loss {losses[0][0]:.4f} to {losses[0][-1]:.4f}; {result}", flush=True)
    assert len(losses[0]) == STEPS
    assert losses[0][-1] < 0.5 * losses[0][0], "it did not learn: nothing is compared"
    return result


def check(case, version, found, controls):
    if is_exact(case, version):
        assert found.first is None and found.weights == 0, (case, version, found)
        assert found.scaling_differs is None, (case, version, found)
        return
    assert found.first != 1, (case, version)
    assert (found.scaling_differs or math.inf) >= (found.first or math.inf), (case, version, found)
    assert found.skipped <= LEEWAY * max(1, *(control.skipped for control in controls)), (case, version, found)
    assert found.early <= EPS[case.precision], (case, version, found.early)
    for field in ("smoothed", "weights"):
        limit = LEEWAY * max(getattr(control, field) for control in controls)
        assert getattr(found, field) <= limit, (case, version, field, limit)


def compare_all(runs):
    """What stands beside what, and how far apart: the trainer's and the controls."""
    rows, controls = [], []
    for case in CASES:
        trained = runs.trained(case)
        if case.precision == "fp16":
            assert trained[0][-1]["skipped_steps"] > 5, "too few steps are skipped"
        peers = {}
        for version in case.versions if case.is_sharded else (None,):
            label = f"{case}, beside {VERSIONS[version]}"
            peers[version] = runs.python(case, version)
            rows.append((label, case, version, difference(label, trained, peers[version])))
        if not all(is_exact(case, version) for version in peers):
            label = f"FSDP1 beside fully_shard: {case}"
            controls.append((label, difference(label, *peers.values())))
        if case.way == "DDP":
            alone = dataclasses.replace(case, way="one rank", batch_size=2 * case.batch_size)
            label = f"one rank beside two: {case}"
            controls.append((label, difference(label, runs.trained(alone), trained)))
        if case == Case("bf16", "one rank"):  # what the precision itself makes of it
            whole = dataclasses.replace(case, precision="fp32")
            difference(f"fp32 beside {case}", runs.trained(whole), trained)
    return rows, controls


def table(rows, controls):
    lines = ["| case | first step | 20 steps | loss | smoothed | weights | skipped, scale |",
             "|" + "---|" * 7]
    lines += [f"| {label} | {found} |" for label, _, _, found in rows]
    lines += [f"| control, {label} | {found} |" for label, found in controls]
    return "\n".join(lines) + "\n"


def main():
    began = time.monotonic()
    trainer, probe, peer = single.arguments()
    os.environ["OMP_NUM_THREADS"] = "1"
    single.STEPS = ddp_parity.STEPS = STEPS
    single.SIZES = SIZES
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        runs = Runs(trainer, peer, single.make_initial_weights(probe, scratch), scratch)
        rows, controls = compare_all(runs)
    print(table(rows, controls))
    tell_sample(len(CASES), len(ALL), "cases")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{time.monotonic() - began:.0f} s, of the processor {used.ru_utime + used.ru_stime:.0f}")
    for _, case, version, found in rows:
        check(case, version, found, [control for _, control in controls])


if __name__ == "__main__":
    main()
