# SPDX-License-Identifier: Apache-2.0
"""ddp_probe.cc's loop in Python's DistributedDataParallel on Gloo: one rank of it."""

import contextlib
import json
import sys

import ddp_peer
import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LEARNING_RATE = 0.05


def wave(shape, phase):
    count = torch.Size(shape).numel()
    return torch.sin(torch.arange(count, dtype=torch.float32) * 0.37 + phase).view(shape)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(10, 16)
        self.second = nn.Linear(16, 16)
        self.extra = nn.Linear(16, 16)
        self.last = nn.Linear(16, 4)
        self.register_buffer("shift", torch.zeros(4))
        with torch.no_grad():
            for phase, parameter in enumerate(self.parameters()):
                parameter.copy_(wave(parameter.shape, phase) * 0.3)

    def forward(self, x, with_extra, move):
        self.shift.add_(move)
        hidden = torch.relu(self.first(x))
        hidden = torch.relu(self.second(hidden))
        if with_extra:
            hidden = torch.relu(self.extra(hidden))
        return self.last(hidden) + self.shift


def ddp_options(options):
    named = {"find_unused_parameters", "static_graph", "gradient_as_bucket_view"}
    found = {name: name in options for name in named}
    found["broadcast_buffers"] = "no_broadcast_buffers" not in options
    found["init_sync"] = "no_init_sync" not in options
    if "small_buckets" in options:
        found["bucket_cap_mb"] = 0.0005
    return found


@contextlib.contextmanager
def ending(losses, options):
    """Notes that some rank has no inputs left."""
    try:
        yield
    except RuntimeError as error:
        if "throws" not in options or "exhausted" not in str(error):
            raise
        losses.write("ended\n")


def steps_of(options, steps, rank):
    """A rank's own number of them."""
    if "uneven" not in options:
        return steps
    return steps - 3 * (dist.get_world_size() - 1 - rank if "first_ends_first" in options else rank)


def main():
    folder, steps, accumulation = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    options = set(sys.argv[4:])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    dtype = torch.float64 if "double" in options else torch.float32
    model = Mlp().to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01 * rank)
    ddp = DistributedDataParallel(model, **ddp_options(options))
    hook = [option.removeprefix("comm_hook=") for option in options if option.startswith("comm_hook=")]
    averager = ddp_peer.with_hook(ddp, json.loads(hook[0])) if hook else None
    with open(f"{folder}/losses.{rank}", "w") as losses:

        def train_step(step):
            with_extra = "always" in options or ("extra" in options and step % 2 == 0)
            for micro in range(accumulation):
                phase = float(step * 7 + micro) + 0.5 * rank
                x, target = wave((6, 10), phase).to(dtype), wave((6, 4), phase + 1).to(dtype)
                last = micro + 1 == accumulation
                with contextlib.nullcontext() if last else ddp.no_sync():
                    output = ddp(x, with_extra, 0.01 * (rank + 1))
                    loss = (output - target).square().mean() / accumulation
                    loss.backward()
                losses.write(f"{loss.item():.9g}\n")
            with torch.no_grad():
                for parameter in model.parameters():
                    if parameter.grad is not None:
                        parameter.add_(parameter.grad, alpha=-LEARNING_RATE)
            if averager:
                averager.average_parameters(model.parameters())
            for parameter in model.parameters():
                parameter.grad = None

        for epoch in range(2 if "epochs" in options else 1):
            uneven = ddp.join(divide_by_initial_world_size="by_remaining" not in options, enable="uneven" in options,
                              throw_on_early_termination="throws" in options)
            with ending(losses, options), uneven:
                for step in range(steps_of(options, steps, rank)):
                    train_step(epoch * steps + step)
    save_file(model.state_dict(), f"{folder}/weights.{rank}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
