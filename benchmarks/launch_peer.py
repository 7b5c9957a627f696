# SPDX-License-Identifier: Apache-2.0
"""python_peer's GPT-2 in DistributedDataParallel on Gloo, as short as such a script can be: one rank of it under
torchrun. After each step rank 0 prints a line: `step N/STEPS`, and the loss and the seconds as JSON. It takes the
options of python_peer, and trains for an epoch at most."""

import json
import time

import python_peer
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def batches(options, rank, world_size):
    """This rank's, as ddp_peer deals them, without the last ones, which are not full."""
    data = python_peer.read_text(options.text, 0)
    samples = (len(data) - 1) // options.context
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(options.seed)).tolist()
    mine = order[rank::world_size]
    for first in range(0, len(mine) - options.batch_size, options.batch_size):
        rows = [data[i * options.context : (i + 1) * options.context + 1]
                for i in mine[first : first + options.batch_size]]
        batch = torch.stack(rows).long()
        yield batch[:, :-1], batch[:, 1:]


def main():
    options = python_peer.parse()
    torch.manual_seed(options.seed)
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(python_peer.make_model(options))
    optimizer = python_peer.make_optimizer(options, model)
    began = time.perf_counter()
    for step, (tokens, targets) in enumerate(batches(options, rank, world_size), start=1):
        loss = python_peer.loss_of(model(tokens), targets)
        loss.backward()
        total = loss.detach() / world_size
        dist.all_reduce(total)
        optimizer.step()
        optimizer.zero_grad()
        ended = time.perf_counter()
        if rank == 0:
            row = {"loss": total.item(), "step_seconds": ended - began}
            print(f"step {step}/{options.steps}", json.dumps(row), flush=True)
        began = ended


if __name__ == "__main__":
    main()
