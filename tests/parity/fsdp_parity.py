# SPDX-License-Identifier: Apache-2.0
"""Trains sharded with the real trainer, against one rank on the whole batch and against Python's FSDP.

Every two values of what makes a difference stand in some case together: the strategy, the mesh,
accumulation with whole or sharded gradients, clipping, recomputed activations, and prefetching.
Losses agree within 3e-6 (relative) and weights within 2e-5, with AdamW and eps 1e-5: with 1e-8 Adam
makes weights of the rounding of gradients that are almost zero. In fp64 both within 1e-12. Each
strategy also beside torch.distributed.fsdp's FullyShardedDataParallel and fully_shard. Ends with the
tables of docs/fsdp.md. With --config=long all cases; otherwise every third of those beside one rank, and
fully_shard or FSDP1 for each strategy. With a last argument `cuda` a GPU a rank, through NCCL; cases that need more
GPUs than there are are skipped.
"""

import itertools
import os
import random
import tempfile
from pathlib import Path

import ddp_parity
import trainer_parity as single
from tests.long import is_long, tell_sample

STEPS = 20
ADAMW = {"name": "adamw", "lr": 3e-3, "betas": [0.9, 0.95], "eps": 1e-5, "weight_decay": 0.1}
LIMITS = {False: {"loss": 3e-6, "weights": 2e-5}, True: {"loss": 1e-12, "weights": 1e-12}}

# ranks: ranks that share a copy, where the strategy leaves it open
MESHES = {"2": (2, 2), "4": (4, 4), "2x2": (4, 2), "4x1": (4, 1)}
FACTORS = {
    "strategy": ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"],
    "mesh": list(MESHES),
    "accumulation": ["1", "3 whole", "3 sharded"],
    "clip": [None, 0.5],
    "prefetch": ["BACKWARD_PRE", "BACKWARD_POST", "none", "forward"],
    "recompute": [False, True],
    "double": [False, True],
}
VERSIONS = {1: "FSDP1", 2: "fully_shard"}


def is_hybrid(strategy):
    return "HYBRID" in strategy


def is_possible(case):
    return is_hybrid(case["strategy"]) or "x" not in case["mesh"]


def pairs(case):
    return set(itertools.combinations(sorted(case.items(), key=str), 2))


def pairwise_cases():
    """Few cases in which every two values of two factors meet, where they can."""
    every = [dict(zip(FACTORS, values)) for values in itertools.product(*FACTORS.values())]
    every = [case for case in every if is_possible(case)]
    random.Random(7).shuffle(every)
    missing = set().union(*map(pairs, every))
    cases = []
    while missing:
        best = max(every, key=lambda case: len(pairs(case) & missing))
        missing -= pairs(best)
        cases.append(best)
    order = FACTORS["strategy"]
    return sorted(cases, key=lambda case: (order.index(case["strategy"]), case["mesh"]))


def micro_batches(case):
    return int(case["accumulation"].split()[0])


def sharded_config(folder, case):
    ranks, shards = MESHES[case["mesh"]]
    config = ddp_parity.config_of(folder, ADAMW, {}, ranks, micro_batches(case), case["double"],
                                  case["clip"])
    forward = case["prefetch"] == "forward"
    config["parallel"] |= {
        "use_fsdp": True,
        "sharding_strategy": case["strategy"],
        "fsdp": {
            "backward_prefetch": "BACKWARD_PRE" if forward else case["prefetch"],
            "forward_prefetch": forward,
            "accumulated_gradients": (case["accumulation"].split() + ["whole"])[1],
        },
    }
    if is_hybrid(case["strategy"]):
        config["parallel"]["fsdp"]["shard_group_size"] = shards
    if case["recompute"]:
        config["activation_checkpointing"] = {"policy": "unit"}
    return config


def has_gpus(case):
    ranks, _ = MESHES[case["mesh"]]
    if single.DEVICE != "cuda" or ranks <= single.torch.cuda.device_count():
        return True
    print(f"{case}: SKIPPED, {ranks} GPUs are needed")
    return False


class Runs:
    def __init__(self, trainer, peer, initial_weights, scratch):
        self.trainer, self.peer = trainer, peer
        self.initial_weights, self.scratch = initial_weights, scratch
        self.count, self.alone = 0, {}

    def folder(self):
        self.count += 1
        folder = self.scratch / str(self.count)
        folder.mkdir()
        single.write_text(folder / "text")
        return folder

    def sharded(self, case):
        folder = self.folder()
        return single.run_trainer(self.trainer, folder, sharded_config(folder, case))

    def one_rank(self, case):
        """The same global batches on one rank, each micro-batch those of all ranks together."""
        ranks, _ = MESHES[case["mesh"]]
        key = (ranks, micro_batches(case), case["clip"], case["double"])
        if key not in self.alone:
            folder = self.folder()
            config = ddp_parity.config_of(folder, ADAMW, {}, 1, micro_batches(case),
                                          case["double"], case["clip"])
            config["training"]["batch_size"] = ranks * single.BATCH_SIZE
            self.alone[key] = single.run_trainer(self.trainer, folder, config)
        return self.alone[key]

    def python(self, case, version):
        ranks, shards = MESHES[case["mesh"]]
        choice = {"version": version, "strategy": case["strategy"], "shards": shards}
        return ddp_parity.run_peers(self.peer, self.folder(), self.initial_weights, ADAMW, choice,
                                    ranks, micro_batches(case), case["double"], case["clip"])


def check(label, case, found, expected):
    difference, weights = ddp_parity.compare(label, found, expected)
    limits = LIMITS[case["double"]]
    assert difference <= limits["loss"], (difference, limits)
    assert weights <= limits["weights"], (weights, limits)
    return difference, weights


def against_one_rank(runs):
    rows = []
    every = list(filter(has_gpus, pairwise_cases()))
    cases = every if is_long() else every[::5]
    tell_sample(len(cases), len(every), "cases beside one rank")
    for case in cases:
        label = ", ".join(f"{k} {v}" for k, v in case.items())
        differences = check(label, case, runs.sharded(case), runs.one_rank(case))
        rows.append((case, *differences))
    return rows


def against_python(runs):
    rows = []
    every = list(itertools.product(FACTORS["strategy"], VERSIONS))
    every.remove(("NO_SHARD", 2))  # fully_shard has none
    pairs_of_both = every if is_long() else every[::2]
    tell_sample(len(pairs_of_both), len(every), "strategies beside FSDP1 or fully_shard")
    for strategy, version in pairs_of_both:
        if version == 2 and strategy == "_HYBRID_SHARD_ZERO2":
            mesh, accumulation = "2x2", "1"
        else:
            mesh = "2x2" if is_hybrid(strategy) else "2"
            accumulation = "3 whole"
        case = {"strategy": strategy, "mesh": mesh, "accumulation": accumulation,
                "clip": 0.5, "prefetch": "BACKWARD_PRE", "recompute": version == 2,
                "double": False}
        if not has_gpus(case):
            continue
        found = runs.sharded(case)
        label = f"{strategy} {mesh} beside {VERSIONS[version]}"
        rows.append((label, *check(label, case, found, runs.python(case, version))))
    return rows


def table(against_one, against_peers):
    lines = ["| " + " | ".join([*FACTORS, "loss", "weights"]) + " |",
             "|" + "---|" * (len(FACTORS) + 2)]
    for case, loss, weights in against_one:
        values = [("fp64" if v else "fp32") if k == "double" else
                  ("yes" if v else "no") if k == "recompute" else str(v or "off")
                  for k, v in case.items()]
        lines.append("| " + " | ".join([*values, f"{loss:.1e}", f"{weights:.1e}"]) + " |")
    lines += ["", "| strategy and mesh, beside | loss | weights |", "|---|---|---|"]
    lines += [f"| {label} | {loss:.1e} | {weights:.1e} |" for label, loss, weights in against_peers]
    return "\n".join(lines) + "\n"


def main():
    trainer, probe, peer = single.arguments()
    os.environ["OMP_NUM_THREADS"] = "1"
    single.STEPS = ddp_parity.STEPS = STEPS
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        runs = Runs(trainer, peer, single.make_initial_weights(probe, scratch), scratch)
        peers = against_python(runs)
        rows = against_one_rank(runs)
    print(table(rows, peers))


if __name__ == "__main__":
    main()
