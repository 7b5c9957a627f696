# SPDX-License-Identifier: Apache-2.0
"""python_peer's GPT-2 in torch's FullyShardedDataParallel or fully_shard: one rank of it, on Gloo, or
on a GPU with NCCL.

The environment and the options are ddp_peer's; the last argument says which, {"version": 1 or 2,
"strategy": a name, "reduce": a dtype}. Lower precision is that of the gathered parameters, without
autocast. Rank 0 writes the losses over all ranks and the final weights.
"""

import contextlib
import functools

import ddp_peer
import python_peer
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardingStrategy,
    fully_shard,
)
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

REDUCTIONS = {None: None, "float32": torch.float32, "bfloat16": torch.bfloat16,
              "float16": torch.float16}


class FusedGradScaler(ShardedGradScaler):
    """Found infinities as fused optimizers take them: a scalar, 0 or 1, not how many ranks have."""

    def unscale_(self, optimizer):
        super().unscale_(optimizer)
        if not self.is_enabled():
            return
        found = self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        found.update({device: count.clamp(max=1).squeeze() for device, count in found.items()})


def shard(model, version, strategy, shards, precision):
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
            device_id=torch.device(device), mixed_precision=MixedPrecision(*precision))
        return model, model.no_sync
    mesh = mesh or init_device_mesh(device, (world_size,))
    reshard = strategy in ("FULL_SHARD", "HYBRID_SHARD")
    for unit in (*model.h, model):
        fully_shard(unit, mesh=mesh, reshard_after_forward=reshard,
                    mp_policy=MixedPrecisionPolicy(*precision))

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


def whole_weights(model):
    options = StateDictOptions(full_state_dict=True)
    return get_model_state_dict(model, options=options)


def wrap(options, model, choice):
    version = choice["version"]
    decayed = decayed_names(options, model)
    precision = (python_peer.LOW_PRECISION.get(options.precision),
                 REDUCTIONS[choice.get("reduce")])
    model, no_sync = shard(model, version, choice["strategy"],
                           choice.get("shards", dist.get_world_size()), precision)
    python_peer.parameter_groups = functools.partial(groups_by_name, decayed)
    scaler = python_peer.make_scaler(
        options, FusedGradScaler if version == 1 else torch.amp.GradScaler)
    return ddp_peer.Wrapped(
        model=model,
        no_sync=no_sync,
        clip=functools.partial(clip, model, version),
        autocast=contextlib.nullcontext,
        updates=python_peer.Updates(python_peer.make_optimizer(options, model), scaler),
        whole_weights=functools.partial(whole_weights, model))


if __name__ == "__main__":
    ddp_peer.train(wrap)
