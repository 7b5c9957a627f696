"""python_peer's GPT-2 in torch's FullyShardedDataParallel or fully_shard: one rank of it, on Gloo, or
on a GPU with NCCL.

The environment and the options are ddp_peer's; the last argument says which, {"version": 1 or 2,
"strategy": a name}. Rank 0 writes the losses over all ranks and the final weights.
"""

import contextlib
import functools
import json
import os
import sys
import time

import ddp_peer
import python_peer
import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.nn import functional as F


def shard(model, version, strategy, shards):
    """The model with its blocks sharded apart, and a context for micro-batches before the last."""
    world_size = dist.get_world_size()
    device = "cuda" if next(model.parameters()).is_cuda else "cpu"
    hybrid = strategy.endswith(("HYBRID_SHARD", "HYBRID_SHARD_ZERO2"))
    mesh = None
    if hybrid:
        mesh = init_device_mesh(device, (world_size // shards, shards),
                                mesh_dim_names=("replicate", "shard"))
    if version == 1:
        model = FullyShardedDataParallel(
            model, sharding_strategy=ShardingStrategy[strategy], device_mesh=mesh,
            auto_wrap_policy=ModuleWrapPolicy({python_peer.Block}), use_orig_params=True,
            device_id=torch.device(device))
        return model, model.no_sync
    mesh = mesh or init_device_mesh(device, (world_size,))
    reshard = strategy in ("FULL_SHARD", "HYBRID_SHARD")
    for block in model.h:
        fully_shard(block, mesh=mesh, reshard_after_forward=reshard)
    fully_shard(model, mesh=mesh, reshard_after_forward=reshard)

    @contextlib.contextmanager
    def no_sync():
        model.set_requires_gradient_sync(False)
        yield
        model.set_requires_gradient_sync(True)

    return model, no_sync


def clip(model, version, norm):
    if version == 1:
        model.clip_grad_norm_(norm)
    else:
        torch.nn.utils.clip_grad_norm_(model.parameters(), norm)


def decayed_names(options, model):
    """Which parameters decay; once they are sharded their shapes do not tell."""
    decay, _ = python_peer.parameter_groups(model, options.weight_decay)
    chosen = {id(parameter) for parameter in decay["params"]}
    return {name for name, parameter in model.named_parameters() if id(parameter) in chosen}


def groups_by_name(decayed, model, weight_decay):
    groups = [{"params": [], "weight_decay": weight_decay}, {"params": [], "weight_decay": 0.0}]
    for name, parameter in model.named_parameters():
        name = name.replace("_fsdp_wrapped_module.", "")
        groups[0 if name in decayed else 1]["params"].append(parameter)
    return groups


def whole_weights(model, version):
    options = StateDictOptions(full_state_dict=True)
    return get_model_state_dict(model, options=options)


def main():
    choice = json.loads(sys.argv.pop())
    version = choice["version"]
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
    decayed = decayed_names(options, model)
    model, no_sync = shard(model, version, choice["strategy"], choice.get("shards", world_size))
    python_peer.parameter_groups = functools.partial(groups_by_name, decayed)
    optimizer = python_peer.make_optimizer(options, model)
    data = python_peer.read_text(options.text, options.validation_fraction)
    with open(f"{options.losses}.{rank}", "w") as log:
        steps = ddp_peer.steps(options, data, rank, world_size)
        for step, (micro_batches, tokens) in enumerate(steps, start=1):
            if step > options.steps:
                break
            began = time.time()
            loss = ddp_peer.train_step(
                options, model, optimizer, micro_batches, tokens, world_size, no_sync,
                functools.partial(clip, model, version))
            row = {"step": step, "loss": loss, "began": began, "ended": time.time()}
            print(json.dumps(row), file=log, flush=True)
    weights = whole_weights(model, version)
    if rank == 0 and options.final_weights:
        save_file(weights, options.final_weights)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # as ddp_peer does
