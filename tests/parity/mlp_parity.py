# SPDX-License-Identifier: Apache-2.0
"""prepare_ddp in a loop of one's own against Python's DistributedDataParallel, bit for bit.

A module with a buffer that each rank moves differently, and with a layer that is used in every
other step or never: what a language model does not show of DDP's options. And ranks that have
unequally many steps, in one `join` or one for each epoch; and the comm hooks that keep a state.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from safetensors.torch import load_file

from tests.long import is_long, tell_sample
from tests.ports import free_port

STEPS = 20


def hook(name, **fields):
    return "comm_hook=" + json.dumps({"name": name, **fields})


POWER_SGD = {"start_powerSGD_iter": 3}
LOCAL = {"start_localSGD_iter": 4, "period": 5}  # the last step averages

# label: ranks, accumulation, options
ALL = {
    "a layer never used": (2, 1, ["find_unused_parameters"]),
    "a layer used in every other step": (2, 1, ["find_unused_parameters", "extra"]),
    "the same, accumulated": (2, 3, ["find_unused_parameters", "extra"]),
    "the same, small bucket views": (
        2,
        2,
        ["find_unused_parameters", "extra", "gradient_as_bucket_view", "small_buckets"],
    ),
    "static graph without the layer": (2, 1, ["static_graph"]),
    "static graph, bucket views": (2, 1, ["static_graph", "gradient_as_bucket_view"]),
    "buffers of each rank's own": (2, 2, ["find_unused_parameters", "no_broadcast_buffers"]),
    "weights of each rank's own": (2, 1, ["find_unused_parameters", "no_init_sync"]),
    "4 ranks": (4, 1, ["find_unused_parameters", "extra"]),
    "powerSGD": (2, 1, ["always", hook("powerSGD", **POWER_SGD)]),
    "powerSGD, fp64, 3 columns, small buckets": (
        2, 1, ["always", "double", "small_buckets", hook(
            "powerSGD", **POWER_SGD, matrix_approximation_rank=3, min_compression_rate=0.5, random_seed=7)]),
    "powerSGD, bucket views, shapes together, no warm start": (
        2, 2, ["always", "gradient_as_bucket_view", hook(
            "powerSGD", **POWER_SGD, matrix_approximation_rank=2, warm_start=False, min_compression_rate=1,
            batch_tensors_with_same_shape=True)]),
    "powerSGD, fp64, no feedback": (
        2, 1, ["always", "double", hook(
            "powerSGD", **POWER_SGD, use_error_feedback=False, orthogonalization_epsilon=1e-8)]),
    "batched powerSGD": (2, 1, ["always", hook("batched_powerSGD", **POWER_SGD)]),
    "batched powerSGD, fp64, small buckets": (
        2, 2, ["always", "double", "small_buckets", hook(
            "batched_powerSGD", **POWER_SGD, matrix_approximation_rank=3)]),
    "post-localSGD": (2, 1, ["always", hook("post_localSGD", **LOCAL, subgroup_size=1)]),
    "post-localSGD, fp64, groups of 2": (
        4, 1, ["always", "double", "small_buckets", hook("post_localSGD", **LOCAL, subgroup_size=2)]),
    "post-localSGD, gradients not reduced": (
        2, 2, ["always", hook("post_localSGD", **LOCAL, subgroup_size=1, post_local_gradient_allreduce=False)]),
    "uneven, 2 ranks": (2, 1, ["uneven", "find_unused_parameters"]),
    "uneven, 3 ranks, the first ends first": (
        3, 1, ["uneven", "first_ends_first", "find_unused_parameters", "extra"]),
    "uneven, 3 ranks, mean of those that remain": (
        3, 2, ["uneven", "by_remaining", "find_unused_parameters", "small_buckets"]),
    "uneven, 2 ranks, whole layer, first ends first": (
        2, 1, ["uneven", "first_ends_first", "by_remaining", "always", "small_buckets"]),
    "uneven, all end with the first": (2, 1, ["uneven", "throws", "find_unused_parameters"]),
    "uneven, 3 ranks, static graph": (3, 1, ["uneven", "static_graph", "no_broadcast_buffers"]),
    # A hook divides by all ranks in any case.
    "uneven, 2 ranks, two epochs, powerSGD, shapes together, no warm start": (
        2, 1, ["uneven", "epochs", "by_remaining", "always", hook(
            "powerSGD", **POWER_SGD, warm_start=False, min_compression_rate=1, batch_tensors_with_same_shape=True)]),
    "uneven, 3 ranks, two epochs, first ends first": (
        3, 2, ["uneven", "epochs", "first_ends_first", "find_unused_parameters", "extra"]),
    "uneven, 3 ranks, two epochs, bf16 hook, small buckets": (
        3, 1, ["uneven", "epochs", "always", "small_buckets", 'comm_hook="bf16_compress"']),
    "uneven, two epochs, all end with the first": (2, 1, ["uneven", "epochs", "throws", "find_unused_parameters"]),
}
# Those of long runs alone.
FURTHER = {
    "powerSGD", "powerSGD, bucket views, shapes together, no warm start", "powerSGD, fp64, no feedback",
    "batched powerSGD", "post-localSGD", "uneven, 2 ranks",
    "uneven, 3 ranks, the first ends first", "uneven, 3 ranks, static graph",
    "uneven, 3 ranks, two epochs, first ends first", "uneven, 3 ranks, two epochs, bf16 hook, small buckets",
    "uneven, two epochs, all end with the first"}
CASES = {label: case for label, case in ALL.items() if is_long() or label not in FURTHER}


def run_ranks(command, folder, ranks, accumulation, options):
    folder.mkdir()
    environment = os.environ | {
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    arguments = [str(folder), str(STEPS), str(accumulation), *options]
    processes = [
        subprocess.Popen(
            [*command, *arguments],
            env=environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(ranks)
    ]
    assert [process.wait() for process in processes] == [0] * ranks
    losses = [(folder / f"losses.{rank}").read_text().split() for rank in range(ranks)]
    return losses, [load_file(folder / f"weights.{rank}") for rank in range(ranks)]


def main():
    probe, peer = (str(Path(argument).resolve()) for argument in sys.argv[1:3])
    tell_sample(len(CASES), len(ALL), "cases of a small module")
    with tempfile.TemporaryDirectory() as name:
        for number, (label, case) in enumerate(CASES.items()):
            found = run_ranks([probe], Path(name) / f"{number}-probe", *case)
            expected = run_ranks([sys.executable, peer], Path(name) / f"{number}-peer", *case)
            print(f"{label}: losses {found[0][0][0]} to {found[0][0][-1]}", flush=True)
            assert len(set(found[0][0])) > STEPS // 2, "nothing moves: nothing is compared"
            assert found[0] == expected[0], f"losses differ: {found[0]} {expected[0]}"
            for mine, theirs in zip(found[1], expected[1]):
                assert mine.keys() == theirs.keys()
                for tensor in mine:
                    assert mine[tensor].equal(theirs[tensor]), f"{tensor} differs"
            weights = found[1][0]
            alike = all(other["first.weight"].equal(weights["first.weight"]) for other in found[1])
            assert alike == ("no_init_sync" not in case[2]), "the ranks' weights"


if __name__ == "__main__":
    main()
