# SPDX-License-Identifier: Apache-2.0
"""Trains on several ranks with the real trainer and with Python's DistributedDataParallel.

From the same weights on the same text, on Gloo, losses and final weights must be the same bits in
each of DDP's options. Then the trainer against itself on one rank, the whole batch at once: there
the order of additions differs, so within 1e-6, in fp64 within 1e-12. With a last argument `cuda`
each rank has a GPU and NCCL, and the limits are trainer_parity's.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import trainer_parity as single

from tests.long import is_long, tell_sample
from tests.ports import free_port

STEPS = 20
ADAMW = {"name": "adamw", "lr": 3e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}
SGD = {"name": "sgd", "lr": 0.3, "momentum": 0.9, "weight_decay": 0.01}


def power_sgd(name="powerSGD", buckets=None, **fields):
    """Options of DDP with a hook of that name."""
    hook = {"comm_hook": {"name": name, "start_powerSGD_iter": 3, "matrix_approximation_rank": 2, **fields}}
    return hook | ({"bucket_cap_mb": buckets} if buckets else {})


def post_local_sgd(start, period, subgroup_size, **fields):
    return {"comm_hook": {"name": "post_localSGD", "start_localSGD_iter": start, "period": period,
                          "subgroup_size": subgroup_size, **fields}}


# label: optimizer, options of DDP, ranks, accumulation
ALL = {
    "adamw": (ADAMW, {}, 2, 1),
    "sgd": (SGD, {}, 2, 1),
    "sgd, accumulation": (SGD, {}, 2, 3),
    "adamw, accumulation": (ADAMW, {}, 2, 3),
    "small buckets": (ADAMW, {"bucket_cap_mb": 0.02}, 2, 2),
    "bucket views": (ADAMW, {"gradient_as_bucket_view": True}, 2, 2),
    "bucket views, sgd, small buckets": (
        SGD,
        {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.02},
        2,
        1,
    ),
    "find unused": (ADAMW, {"find_unused_parameters": True}, 2, 2),
    "static graph": (ADAMW, {"static_graph": True}, 2, 1),
    "no buffers, checked": (SGD, {"broadcast_buffers": False, "check_reduction": True}, 2, 1),
    "allreduce hook": (ADAMW, {"comm_hook": "allreduce"}, 2, 1),
    "fp16 hook": (ADAMW, {"comm_hook": "fp16_compress"}, 2, 1),
    "bf16 hook": (SGD, {"comm_hook": "bf16_compress"}, 2, 2),
    "powerSGD": (ADAMW, power_sgd(), 2, 1),
    "powerSGD, small buckets, batches": (
        SGD, power_sgd(buckets=0.02, batch_tensors_with_same_shape=True, random_seed=5), 2, 2),
    "powerSGD, no warm start": (SGD, power_sgd(buckets=0.02, warm_start=False), 2, 1),
    "powerSGD, no feedback, epsilon": (
        SGD, power_sgd(use_error_feedback=False, orthogonalization_epsilon=1e-8, min_compression_rate=4), 2, 1),
    "powerSGD, 4 columns, fp64": (
        SGD, power_sgd(buckets=0.02, matrix_approximation_rank=4), 2, 1),
    "batched powerSGD": (ADAMW, power_sgd("batched_powerSGD", buckets=0.02), 2, 1),
    "batched powerSGD, fp64": (ADAMW, power_sgd("batched_powerSGD", matrix_approximation_rank=3), 2, 2),
    "post-localSGD, fp64": (ADAMW, post_local_sgd(4, 3, 1), 2, 1),
    "post-localSGD, no reduction": (
        SGD, post_local_sgd(0, 2, 1, post_local_gradient_allreduce=False), 2, 1),
    "4 ranks": (ADAMW, {}, 4, 1),
    "4 ranks, sgd, accumulation": (SGD, {}, 4, 2),
    "fp64": (ADAMW, {}, 2, 2),
}
# Each option of DDP once, more ranks than two, and double precision.
SAMPLE = ["bucket views, sgd, small buckets", "find unused", "static graph", "no buffers, checked", "bf16 hook",
          "powerSGD, 4 columns, fp64", "post-localSGD, fp64", "4 ranks, sgd, accumulation", "fp64"]
CASES = ALL if is_long() else {label: ALL[label] for label in SAMPLE}


def config_of(folder, optimizer, ddp, ranks, accumulation, double, clip=None):
    clipping = {"clip_grad_norm": clip} if clip else {}
    config = single.trainer_config(folder, optimizer, clipping, {"name": "constant"}, double)
    config["training"]["max_steps"] = STEPS
    config["training"]["gradient_accumulation_steps"] = accumulation
    config["parallel"]["ddp"] = ddp
    config["launcher"] = {"processes": ranks}
    return config


def run_peers(peer, folder, initial_weights, optimizer, choice, ranks, accumulation, double,
              clip=None, **more):
    arguments = single.peer_arguments(folder, initial_weights, optimizer, double,
                                      **{"accumulation": accumulation, "clip-norm": clip, **more})
    environment = os.environ | {
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "GLOO_SOCKET_IFNAME": "lo",
    }
    processes = [
        subprocess.Popen(
            [sys.executable, peer, *arguments, json.dumps(choice)],
            env=environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(ranks)
    ]
    assert [process.wait() for process in processes] == [0] * ranks
    rows = [json.loads(line) for line in Path(f"{folder}/losses.0").read_text().splitlines()]
    return rows, single.load_file(folder / "final")


def compare(label, found, expected):
    (found_rows, found_weights), (expected_rows, expected_weights) = found, expected
    losses = [[row["loss"] for row in rows] for rows in (found_rows, expected_rows)]
    assert found_weights.keys() == expected_weights.keys()
    weights = max(
        (found_weights[n] - expected_weights[n]).abs().max().item() for n in expected_weights
    )
    difference = single.largest_difference(*losses)
    print(f"{label}: loss {losses[0][0]:.4f} to {losses[0][-1]:.4f}; differences: loss", end=" ")
    print(f"{difference}, weights {weights}", flush=True)
    assert losses[0][-1] < 0.97 * losses[0][0], "it did not learn: nothing is compared"
    return difference, weights


def against_one_rank(trainer, folder, double, several):
    """The same global batches on one rank, in one piece."""
    folder = folder / "alone"
    folder.mkdir()
    single.write_text(folder / "text")
    config = config_of(folder, SGD, {}, 1, 1, double)
    config["training"]["batch_size"] = 2 * single.BATCH_SIZE
    return compare("against one rank", several, single.run_trainer(trainer, folder, config))


def main():
    trainer, probe, peer = single.arguments()
    os.environ["OMP_NUM_THREADS"] = "1"
    single.STEPS = STEPS
    with tempfile.TemporaryDirectory() as name:
        initial_weights = single.make_initial_weights(probe, Path(name))
        tell_sample(len(CASES), len(ALL), "cases of DDP")
        for number, (label, case) in enumerate(CASES.items()):
            if single.DEVICE == "cuda" and case[2] > single.torch.cuda.device_count():
                print(f"{label}: SKIPPED, {case[2]} GPUs are needed")
                continue
            folder = Path(name) / str(number)
            folder.mkdir()
            single.write_text(folder / "text")
            double = label.endswith("fp64")
            found = single.run_trainer(trainer, folder, config_of(folder, *case, double))
            expected = run_peers(peer, folder, initial_weights, *case, double)
            loss, weights = compare(label, found, expected)
            within = single.limits(double)
            assert loss <= within["log"] and weights <= within["weights"]
        for double, bound in ((False, 1e-6), (True, 1e-12)):
            folder = Path(name) / f"alone-{double}"
            folder.mkdir()
            single.write_text(folder / "text")
            found = single.run_trainer(
                trainer, folder, config_of(folder, SGD, {}, 2, 1, double)
            )
            difference, _ = against_one_rank(trainer, folder, double, found)
            assert difference <= max(bound, single.limits(double)["log"]), difference


if __name__ == "__main__":
    main()
