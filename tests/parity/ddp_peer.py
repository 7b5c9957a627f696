# SPDX-License-Identifier: Apache-2.0
"""python_peer's GPT-2 in torch.nn.parallel.DistributedDataParallel: one rank of it, on
Gloo, or on a GPU with NCCL.

The environment says which (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), as torchrun sets it. Rank 0
writes the losses over all ranks and the final weights.
"""

import contextlib
import dataclasses
import functools
import json
import os
import sys
import time
from collections.abc import Callable

import python_peer
import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.nn.parallel import DistributedDataParallel

HOOKS = {
    "allreduce": default_hooks.allreduce_hook,
    "fp16_compress": default_hooks.fp16_compress_hook,
    "bf16_compress": default_hooks.bf16_compress_hook,
}


def of_matrix(function):
    """Takes a matrix for a batch of one: batched_powerSGD_hook gives one, which the assertion in
    _orthogonalize refuses since that takes batches."""
    return lambda matrices, epsilon=0: function(
        matrices if matrices.dim() == 3 else matrices.unsqueeze(0), epsilon)


def power_sgd(name, **fields):
    """(state, hook) by the name of the hook. It waits for each bucket: a hook starts its later
    reductions in Gloo's threads, in an order that is not the same on all ranks."""
    powerSGD_hook._orthogonalize = of_matrix(powerSGD_hook._orthogonalize)
    run = getattr(powerSGD_hook, f"{name}_hook")

    def hook(state, bucket):
        future = run(state, bucket)
        future.wait()
        return future

    return powerSGD_hook.PowerSGDState(None, **fields), hook


def post_local_sgd(start_localSGD_iter, period, subgroup_size, post_local_gradient_allreduce=True):
    """(state, hook, averager) of post-localSGD."""
    group, _ = dist.new_subgroups(subgroup_size)
    state = post_localSGD_hook.PostLocalSGDState(
        None, group, start_localSGD_iter, post_local_gradient_allreduce)
    averager = PeriodicModelAverager(period=period, warmup_steps=start_localSGD_iter)
    return state, post_localSGD_hook.post_localSGD_hook, averager


def with_hook(ddp, choice):
    """Registers a hook; what averages parameters with it, or nothing."""
    if not isinstance(choice, dict):
        ddp.register_comm_hook(None, HOOKS[choice])
        return None
    fields = dict(choice)
    name = fields.pop("name")
    if name != "post_localSGD":
        ddp.register_comm_hook(*power_sgd(name, **fields))
        return None
    *hook, averager = post_local_sgd(**fields)
    ddp.register_comm_hook(*hook)
    return averager


def steps(options, data, rank, world_size):
    """Each step's micro-batches of this rank, and its number of tokens over all ranks."""
    samples = (len(data) - 1) // options.context
    per_step = options.batch_size * options.accumulation * world_size
    epoch = 0
    while True:
        generator = torch.Generator().manual_seed(options.seed + epoch)
        order = torch.randperm(samples, generator=generator).tolist()
        for begin in range(0, samples, per_step):
            dealt = order[begin : begin + per_step]
            mine = dealt[rank::world_size]
            most = len(dealt[0::world_size])  # of rank 0: all ranks take part as often
            micro_batches = []
            for first in range(0, most, options.batch_size):
                chosen = mine[first : first + options.batch_size]
                weight = len(chosen) * options.context
                rows = [
                    data[i * options.context : (i + 1) * options.context + 1]
                    for i in chosen or order[:1]  # an empty one takes part without weight
                ]
                batch = torch.stack(rows).long()
                micro_batches.append((batch[:, :-1], batch[:, 1:], weight))
            yield micro_batches, len(dealt) * options.context
        epoch += 1


@dataclasses.dataclass
class Wrapped:
    """A model over all ranks, and what differs between the ways to train it."""

    model: torch.nn.Module
    no_sync: Callable  # a context for micro-batches before the last
    clip: Callable  # gradients to a norm
    autocast: Callable  # a context for the forward pass
    updates: python_peer.Updates
    whole_weights: Callable  # as the model has them alone; all ranks call it


def train_step(options, wrapped, micro_batches, total_tokens):
    world_size = dist.get_world_size()
    step_loss = 0.0
    for number, (tokens, targets, weight) in enumerate(micro_batches, start=1):
        last = number == len(micro_batches)
        tokens, targets = tokens.to(options.device), targets.to(options.device)
        with contextlib.nullcontext() if last else wrapped.no_sync():
            with wrapped.autocast():
                loss = python_peer.loss_of(wrapped.model(tokens), targets)
            scaler = wrapped.updates.scaler
            scaler.scale(loss * (weight * world_size / total_tokens)).backward()
        share = loss.detach() * (weight / total_tokens)
        step_loss = share if number == 1 else step_loss + share
    loss = step_loss.double().reshape(1)
    dist.all_reduce(loss)
    wrapped.updates.step(lambda: options.clip_norm and wrapped.clip(options.clip_norm))
    return loss.item()


def train(wrap):
    """Trains what `wrap` makes of the options, the model and the last argument's choice."""
    choice = json.loads(sys.argv.pop())
    options = python_peer.parse()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    if options.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if options.device == "cuda" else "gloo")
    rank = dist.get_rank()
    wrapped = wrap(options, python_peer.make_model(options), choice)
    data = python_peer.read_text(options.text, options.validation_fraction)
    with open(f"{options.losses}.{rank}", "w") as log:
        for step, (micro_batches, tokens) in enumerate(
            steps(options, data, rank, dist.get_world_size()), start=1
        ):
            if step > options.steps:
                break
            began = time.time()
            loss = train_step(options, wrapped, micro_batches, tokens)
            row = {"step": step, "loss": loss, "began": began, "ended": time.time(),
                   **wrapped.updates.record()}
            print(json.dumps(row), file=log, flush=True)
    weights = wrapped.whole_weights()
    if rank == 0 and options.final_weights:
        save_file(weights, options.final_weights)
    dist.barrier()
    dist.destroy_process_group()
    # All is written. LibTorch's threads, taken down in no order that Python knows, at times end a
    # process that is done with "terminate called without an active exception".
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def wrap(options, model, choice):
    hook = choice.pop("comm_hook", None)
    ddp = DistributedDataParallel(model, **choice)
    averager = with_hook(ddp, hook) if hook else None
    optimizer = python_peer.make_optimizer(options, model)
    if averager:
        optimizer = PostLocalSGDOptimizer(optimizer, averager)
    return Wrapped(
        model=ddp,
        no_sync=ddp.no_sync,
        clip=lambda norm: torch.nn.utils.clip_grad_norm_(model.parameters(), norm),
        autocast=functools.partial(python_peer.autocast, options),
        updates=python_peer.Updates(optimizer, python_peer.make_scaler(options)),
        whole_weights=model.state_dict)


if __name__ == "__main__":
    train(wrap)
