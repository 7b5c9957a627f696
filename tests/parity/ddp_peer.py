"""python_peer's GPT-2 in torch.nn.parallel.DistributedDataParallel: one rank of it, on
Gloo, or on a GPU with NCCL.

The environment says which (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), as torchrun sets it. Rank 0
writes the losses over all ranks and the final weights.
"""

import contextlib
import json
import os
import sys
import time

import python_peer
import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

HOOKS = {
    "allreduce": default_hooks.allreduce_hook,
    "fp16_compress": default_hooks.fp16_compress_hook,
    "bf16_compress": default_hooks.bf16_compress_hook,
}


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


def train_step(options, model, optimizer, micro_batches, total_tokens, world_size, no_sync, clip):
    step_loss = 0.0
    for number, (tokens, targets, weight) in enumerate(micro_batches, start=1):
        last = number == len(micro_batches)
        tokens, targets = tokens.to(options.device), targets.to(options.device)
        with contextlib.nullcontext() if last else no_sync():
            logits = model(tokens)
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))
            (loss * (weight * world_size / total_tokens)).backward()
        share = loss.detach() * (weight / total_tokens)
        step_loss = share if number == 1 else step_loss + share
    loss = step_loss.double().reshape(1)
    dist.all_reduce(loss)
    if options.clip_norm:
        clip(options.clip_norm)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.item()


def main():
    ddp_options = json.loads(sys.argv.pop())
    options = python_peer.parse()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    if options.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if options.device == "cuda" else "gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = python_peer.Gpt2(
        options.vocabulary, options.context, options.width, options.layers, options.heads
    )
    if options.initial_weights:
        model.load_state_dict(load_file(options.initial_weights))
    if options.double:
        model.double()
    model.to(options.device)
    hook = ddp_options.pop("comm_hook", None)
    wrapped = DistributedDataParallel(model, **ddp_options)
    if hook:
        wrapped.register_comm_hook(None, HOOKS[hook])
    optimizer = python_peer.make_optimizer(options, model)
    data = python_peer.read_text(options.text, options.validation_fraction)
    with open(f"{options.losses}.{rank}", "w") as log:
        for step, (micro_batches, tokens) in enumerate(
            steps(options, data, rank, world_size), start=1
        ):
            if step > options.steps:
                break
            began = time.time()
            loss = train_step(
                options, wrapped, optimizer, micro_batches, tokens, world_size, wrapped.no_sync,
                lambda norm: torch.nn.utils.clip_grad_norm_(model.parameters(), norm))
            row = {"step": step, "loss": loss, "began": began, "ended": time.time()}
            print(json.dumps(row), file=log, flush=True)
    if rank == 0 and options.final_weights:
        save_file(model.state_dict(), options.final_weights)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    # All is written. LibTorch's threads, taken down in no order that Python knows, at times end a
    # process that is done with "terminate called without an active exception".
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
