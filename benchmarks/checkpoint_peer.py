# SPDX-License-Identifier: Apache-2.0
"""One rank of Python's side of benchmarks/checkpoint: saves and loads the state that checkpoint_probe
does, with torch.save, safetensors, or torch.distributed.checkpoint (DCP).

    checkpoint_peer.py '{"mode": MODE, "folder": FOLDER, "config": {GPT-2's sizes}, "sharded": BOOL}'

MODE: torch, safetensors, dcp, or dcp-async. Sharded tensors are DTensors, as fully_shard has them. Every
save ends with an fsync of its files. A load has ended when the values are in tensors: files that are
mapped into memory are copied from there. The environment says which rank this is. FOLDER is empty;
FOLDER/result.RANK is written there: by name what each took.
"""

import json
import mmap
import os
import resource
import shutil
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from python_peer import Gpt2
from safetensors.torch import load_file, save_file
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard

RANKS = int(os.environ["WORLD_SIZE"])
RANK = int(os.environ["RANK"])


def barrier():
    if RANKS > 1:
        dist.barrier()


def resident_mib(key):
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(key))
    return int(line.split()[1]) / 1024


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure_cost(action):
    """As cost.h has it."""
    barrier()
    Path("/proc/self/clear_refs").write_text("5")
    resident, cpu, began = resident_mib("VmRSS"), cpu_seconds(), time.perf_counter()
    action()
    return {"seconds": time.perf_counter() - began,
            "cpu_seconds": cpu_seconds() - cpu,
            "extra_mib": max(0, resident_mib("VmHWM") - resident)}


def settle_memory(size):
    """As cost.h has it."""
    with mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE):
        pass


def local(tensor):
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def held(tensor, mesh):
    """This rank's rows, where the state is sharded, otherwise all of it."""
    if mesh is None:
        return tensor
    parts = list(tensor.chunk(RANKS)) + [tensor[:0]] * RANKS
    return DTensor.from_local(parts[RANK].clone(), mesh, [Shard(0)], run_check=False,
                              shape=tensor.shape, stride=tensor.stride())


def make_state(config, mesh):
    torch.manual_seed(0)
    model = Gpt2(config["vocab_size"], config["n_positions"], config["n_embd"], config["n_layer"],
                 config["n_head"])
    state = {}
    for name, parameter in model.named_parameters():
        values = parameter.detach()
        state[name] = held(values, mesh)
        state[f"{name}.exp_avg"] = held(values * 0.1, mesh)
        state[f"{name}.exp_avg_sq"] = held(values * values, mesh)
    return state


def sync_file(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def evict(folder):
    """Has the kernel forget what it keeps of these files, which are on disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def digest(state):
    """What differs where values do: sums of their bits."""
    return [local(tensor).view(torch.int32).sum(dtype=torch.int64).item() for tensor in state.values()]


def copy_into(state, values):
    for name, tensor in state.items():
        tensor.copy_(values[name])


class Bench:

    def __init__(self, request):
        self.folder = Path(request["folder"])
        mesh = init_device_mesh("cpu", (RANKS, )) if request["sharded"] else None
        self.state = make_state(request["config"], mesh)
        self.digest = digest(self.state)
        self.results = {"bytes": sum(local(tensor).nbytes for tensor in self.state.values())}

    def save(self, action):
        settle_memory(2 * self.results["bytes"])
        self.results["save"] = measure_cost(action)

    def load(self, action, name="load"):
        """`action` fills the state's tensors, or returns others. Twice, the first time from disk."""
        for kind in ("cold", "warm"):
            for tensor in self.state.values():
                local(tensor).zero_()
            if kind == "cold" and RANK == 0:
                evict(self.folder)
            settle_memory(2 * self.results["bytes"])
            found = []
            self.results[f"{name} {kind}"] = measure_cost(lambda: found.append(action()))
            if digest(found[0] or self.state) != self.digest:
                raise RuntimeError("other values came back")


def run_torch(bench):
    path = bench.folder / "state.pt"

    def save():
        if RANK == 0:
            torch.save(bench.state, path)
            sync_file(path)
        barrier()

    bench.save(save)
    bench.load(lambda: torch.load(path))
    bench.load(lambda: copy_into(bench.state, torch.load(path, mmap=True)), "load mapped")


def run_safetensors(bench):
    path = bench.folder / "state.safetensors"

    def save():
        if RANK == 0:
            save_file(bench.state, path)
            sync_file(path)
        barrier()

    bench.save(save)
    bench.load(lambda: copy_into(bench.state, load_file(path)))


def warm_up(bench):
    """What DCP does once in a process is not counted."""
    path = bench.folder / "warm-up"
    dcp.save({"x": torch.zeros(1)}, checkpoint_id=path)
    dcp.load({"x": torch.zeros(1)}, checkpoint_id=path)


def run_dcp(bench):
    warm_up(bench)
    path = bench.folder / "state"
    bench.save(lambda: dcp.save(bench.state, checkpoint_id=path))
    bench.load(lambda: dcp.load(bench.state, checkpoint_id=path))


def run_dcp_async(bench):
    """Two saves, as Phalanx's: whatever is kept of the first serves the second."""
    warm_up(bench)
    path = bench.folder / "state"
    for number in ("first", "next"):
        stall = {}
        settle_memory(2 * bench.results["bytes"])

        def save(stall=stall):
            futures = []
            stall.update(measure_cost(
                lambda: futures.append(dcp.async_save(bench.state, checkpoint_id=path))))
            futures[0].result()

        bench.results[f"{number} until durable"] = measure_cost(save)
        bench.results[f"{number} stall"] = stall
        barrier()
        if RANK == 0:
            shutil.rmtree(path)
        os.sync()


MODES = {"torch": run_torch, "safetensors": run_safetensors, "dcp": run_dcp, "dcp-async": run_dcp_async}


def main():
    request = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    if RANKS > 1:
        dist.init_process_group("gloo")
    bench = Bench(request)
    MODES[request["mode"]](bench)
    (bench.folder / f"result.{RANK}").write_text(json.dumps(bench.results))
    if RANKS > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
