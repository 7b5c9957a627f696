# SPDX-License-Identifier: Apache-2.0
"""python_peer's GPT-2 in torch's fully_shard, for memory_test.py: one rank of it, on Gloo.

    memory_peer.py STRATEGY '{"vocab_size": ..., ...}' LENGTH STEPS OUTPUT

Does what memory_probe does, in the way of tests/parity/fsdp_peer.py, and writes the same figures of
the process: what was resident before the model and the most that was afterwards.
"""

import json
import os
import sys
from pathlib import Path

import fsdp_peer
import python_peer
import torch
import torch.distributed as dist
from torch.nn import functional as F


def resident(field):
    """VmRSS or VmHWM, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def train(sizes, strategy, length, steps):
    torch.manual_seed(0)
    model = python_peer.Gpt2(sizes["vocab_size"], sizes["n_positions"], sizes["n_embd"],
                             sizes["n_layer"], sizes["n_head"])
    if dist.get_world_size() > 1:
        model, _ = fsdp_peer.shard(model, 2, strategy, dist.get_world_size() // 2, (None, None))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    generator = torch.Generator().manual_seed(dist.get_rank())
    losses = []
    for _ in range(steps):
        tokens = torch.randint(sizes["vocab_size"], (1, length + 1), generator=generator)
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    return losses


def main():
    strategy, sizes, length, steps, output = sys.argv[1:]
    sizes, length, steps = json.loads(sizes), int(length), int(steps)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    tiny = {**sizes, "vocab_size": 64, "n_embd": 8 * sizes["n_head"], "n_layer": 2}
    train(tiny, strategy, length, steps=2)
    baseline = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    losses = train(sizes, strategy, length, steps)
    figures = {"baseline": baseline, "peak": resident("VmHWM"), "losses": losses}
    Path(f"{output}.{dist.get_rank()}").write_text(json.dumps(figures))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # as ddp_peer does
