# SPDX-License-Identifier: Apache-2.0
"""Two ranks through NCCL, each loss beside one rank's on the same global batch; on one GPU if there is one.

NCCL refuses two ranks on one GPU by the name of their host and the address of the GPU: with an NCCL_HOSTID
of its own each rank is on another host to it. Where it refuses all the same, Gloo takes its place
(PHALANX_GPU_BACKEND), and the figures say so.
"""

import functools
import json
import socket
from concurrent.futures import ThreadPoolExecutor

from kit import (config_of, fresh, gpt2, kept, largest_difference, locked, shown, steps_of, write_config,
                 write_json)
from outcome import Ended, require
from runner import Item

SECONDS = 150
BATCH = 8  # of all ranks together
LIMIT, LIMIT_BF16 = 1e-4, 3e-2  # of a loss, relative: other sums; in bfloat16 other roundings in other places
RANKS = 2


def sharded(strategy, offload=False, **fsdp):
    return {"parallel": {"use_fsdp": True, "sharding_strategy": strategy, "cpu_offload": offload, "fsdp": fsdp}}


ACCUMULATION = {"training": {"gradient_accumulation_steps": 3}}
BF16 = {"mixed_precision": {"enabled": True, "dtype": "bfloat16"}}
FULL = sharded("FULL_SHARD")
CASES = {
    "ddp": {},
    "full-shard": FULL,
    "grad-op": sharded("SHARD_GRAD_OP"),
    "no-shard": sharded("NO_SHARD"),
    "hybrid": sharded("HYBRID_SHARD", shard_group_size=2),
    "hybrid-zero2": sharded("_HYBRID_SHARD_ZERO2", shard_group_size=2),
    "prefetch": sharded("FULL_SHARD", forward_prefetch=True),
    "offload": sharded("FULL_SHARD", offload=True),
    "checkpointing": FULL | {"activation_checkpointing": {"policy": "unit"}},
    "accumulation": sharded("FULL_SHARD", accumulated_gradients="sharded") | ACCUMULATION,
    "accumulation-whole": sharded("FULL_SHARD", accumulated_gradients="whole") | ACCUMULATION,
    "bf16": FULL | BF16,
    "ddp-accumulation": ACCUMULATION,
    "ddp-bf16": BF16,
}


def merged(config, more):
    """`more` laid over a config, section by section."""
    result = dict(config)
    for key, value in more.items():
        result[key] = merged(result.get(key, {}), value) if isinstance(value, dict) else value
    return result


def config_for(kit, ranks, more):
    model = gpt2(256, kit.size(64, 16), kit.size(4, 2), kit.size(64, 16), 2)
    return merged(config_of(kit, model, kit.size(12, 4), BATCH // ranks), more)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def place_of(kit, rank, port):
    """The environment of a rank; each is on a host of its own if they share a GPU."""
    share_gpu = kit.gpus < RANKS
    variables = {"RANK": rank, "WORLD_SIZE": RANKS, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                 "LOCAL_RANK": 0 if share_gpu else rank, "LOCAL_WORLD_SIZE": 1 if share_gpu else RANKS,
                 "NCCL_DEBUG": "WARN"}
    if share_gpu:
        variables |= {"NCCL_HOSTID": f"host{rank}", "NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo"}
    return variables


def start_two(kit, folder, config, prefix=(), **variables):
    """The command, and its processes: rank 0 and rank 1."""
    path, port = write_config(folder, config), free_port()
    command = [*prefix, kit.program("trainer"), str(path), f"exp_dir={folder / 'run'}"]
    print("$", *command, flush=True)
    return command, [kit.start(command, folder, kit.environment(**place_of(kit, rank, port), **variables))
                     for rank in range(RANKS)]


def outputs_of(folder, processes):
    """Waits for the ranks, and returns the output of each; rank0.log and rank1.log keep it."""
    with ThreadPoolExecutor(RANKS) as readers:
        logs = list(readers.map(shown, processes, [f"[{rank}] " for rank in range(RANKS)]))
    print("the ranks ended with", *(process.wait() for process in processes), flush=True)
    for rank, log in enumerate(logs):
        (folder / f"rank{rank}.log").write_text(log)
    return logs


def train_two(kit, folder, config, prefix=(), **variables):
    """Returns the records of rank 0's steps and the output of each rank."""
    command, processes = start_two(kit, folder, config, prefix, **variables)
    logs = outputs_of(folder, processes)
    for process, log in zip(processes, logs):
        kit.require_success(command, process.returncode, log)
    return steps_of(folder / "run"), logs


def nccl_answer(kit):
    """{"backend": "nccl"}; with another one also why NCCL is not taken."""
    folder = kit.work / "nccl"
    try:
        train_two(kit, folder, config_for(kit, RANKS, {"training": {"max_steps": 2}, "parallel": {"timeout": "12s"}}))
    except Ended as end:
        return {"backend": "gloo", "why": f"{end.result}: {end.reason}"}
    return {"backend": "gloo" if kit.is_dry else "nccl"}


def backend(kit):
    path = kit.work / "backend.json"
    with locked(path):
        if not path.exists():
            # For the items after one that is ended while it waits for NCCL.
            write_json(path, {"backend": "gloo", "why": "the ranks were ended while they connected"})
            write_json(path, nccl_answer(kit))
        return json.loads(path.read_text())


def variables_of(answer):
    return {"PHALANX_GPU_BACKEND": "gloo"} if "why" in answer else {}


def losses_of_one_rank(kit, more):
    """The same global batches on one rank. What wraps a model does not count there."""
    alone = {key: value for key, value in more.items() if key not in ("parallel", "activation_checkpointing")}
    name = "-".join(["one", *alone])
    return kept(kit.work / f"{name}.json", lambda: kit.train(fresh(kit.work / name), config_for(kit, 1, alone)))


def losses_of_two_ranks(kit, name):
    answer = backend(kit)
    return kept(kit.work / f"two-{name}.json", lambda: train_two(
        kit, fresh(kit.work / f"two-{name}"), config_for(kit, RANKS, CASES[name]), **variables_of(answer))[0])


def nccl(kit, report):
    answer = backend(kit)
    report.note(**answer)
    require("why" not in answer, f"NCCL does not connect two ranks, the other items take Gloo: {answer.get('why')}")


def compare(name, kit, report):
    report.note(backend=backend(kit)["backend"])
    expected = losses_of_one_rank(kit, CASES[name])
    found = losses_of_two_ranks(kit, name)
    require(len(found) == len(expected), f"{len(found)} steps of two ranks, {len(expected)} of one")
    difference, limit = largest_difference(found, expected), LIMIT_BF16 if "bf16" in name else LIMIT
    report.note(losses_differ_by=difference, first_loss=found[0]["loss"], last_loss=found[-1]["loss"])
    require(difference <= limit, f"losses differ by {difference:.1e}, allowed are {limit:.0e}")


MEANINGS = {"ddp": "DDP", "ddp-bf16": "DDP in bfloat16", "ddp-accumulation": "DDP, three micro-batches",
            "prefetch": "FULL_SHARD, forward_prefetch", "offload": "FULL_SHARD, cpu_offload",
            "checkpointing": "FULL_SHARD, activation checkpointing",
            "accumulation": "FULL_SHARD, three micro-batches, their gradients sharded",
            "accumulation-whole": "FULL_SHARD, three micro-batches, their gradients whole",
            "bf16": "FULL_SHARD in bfloat16"}


def meaning(name):
    return MEANINGS.get(name) or CASES[name]["parallel"]["sharding_strategy"]


ITEMS = [Item("two-ranks.nccl", "NCCL connects two ranks", 40, nccl)]
ITEMS += [Item(f"two-ranks.{name}", f"{meaning(name)}: losses as on one rank", 40, functools.partial(compare, name))
          for name in CASES]
