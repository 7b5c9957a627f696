// SPDX-License-Identifier: Apache-2.0
#include "trainer/words/peers.h"

namespace phalanx::words {
namespace {

constexpr Word kFullyShard[] = {
    {"mesh", "parallel.fsdp.mesh.replicate, parallel.fsdp.mesh.shard",
     "its sizes; without them all ranks, or those of a host with HYBRID_SHARD"},
    {"reshard_after_forward", "parallel.fsdp.reshard_after_forward",
     "null: as parallel.sharding_strategy has it; a number: so many ranks keep a copy together"},
    {"shard_placement_fn", "",
     "parameters are flattened and cut evenly, as in FSDP1; a tensor's dimension is not chosen"},
    {"mp_policy", "parallel.fsdp.mixed_precision", ""},
    {"offload_policy", "parallel.cpu_offload", ""},
    {"ignored_params", "parallel.fsdp.ignored_modules",
     "modules by dotted name; single parameters are not left out"},
};

constexpr Word kMixedPrecisionPolicyOffloadPolicy[] = {
    {"param_dtype", "parallel.fsdp.mixed_precision.param_dtype", ""},
    {"reduce_dtype", "parallel.fsdp.mixed_precision.reduce_dtype", ""},
    {"output_dtype", "",
     "outputs keep the dtype that the unit computed in; losses are computed in float32"},
    {"cast_forward_inputs", "parallel.fsdp.mixed_precision.cast_forward_inputs", ""},
};

constexpr Word kMethodsOfFSDPModule[] = {
    {"set_requires_gradient_sync", "parallel.fsdp.accumulated_gradients", ""},
    {"set_requires_all_reduce", "parallel.fsdp.accumulated_gradients",
     "copies are reduced with the last micro-batch"},
    {"set_is_last_backward", "training.gradient_accumulation_steps",
     "the step knows its last micro-batch"},
    {"set_reshard_after_forward", "parallel.fsdp.reshard_after_forward", ""},
    {"set_reshard_after_backward", "parallel.fsdp.reshard_after_forward",
     "parameters are given up after each backward pass"},
    {"set_modules_to_forward_prefetch", "parallel.fsdp.forward_prefetch",
     "by the order of the pass before"},
    {"set_modules_to_backward_prefetch", "parallel.fsdp.backward_prefetch",
     "by the order of the forward pass"},
    {"set_gradient_divide_factor", "",
     "gradients are divided by the number of ranks, in two parts where reduce_dtype is float16"},
    {"set_reduce_scatter_divide_factor", "", "gradients are divided by the number of ranks"},
    {"set_unshard_in_backward", "", "a unit that the backward pass does not reach is not gathered"},
    {"set_allocate_memory_from_process_group_for_comm", "",
     "communication uses LibTorch's allocator"},
    {"set_all_reduce_hook", "", "no hook of FSDP's own; DDP has parallel.ddp.comm_hook"},
    {"set_post_optim_event", "", "the gather of a step waits for the optimizer by itself"},
    {"unshard", "parallel.fsdp.forward_prefetch", "units are gathered by the schedule"},
    {"reshard", "parallel.fsdp.reshard_after_forward", "units are given up by the schedule"},
};

constexpr Chapter kChapters[] = {
    {"fully_shard", kFullyShard},
    {"MixedPrecisionPolicy, OffloadPolicy", kMixedPrecisionPolicyOffloadPolicy},
    {"Methods of FSDPModule", kMethodsOfFSDPModule},
};

}  // namespace

constinit const Peer kFsdp2{"PyTorch FSDP2", "Plain PyTorch with fully_shard", kChapters};

}  // namespace phalanx::words
