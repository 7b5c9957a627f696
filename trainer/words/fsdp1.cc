// SPDX-License-Identifier: Apache-2.0
#include "trainer/words/peers.h"

namespace phalanx::words {
namespace {

constexpr Word kFullyShardedDataParallel[] = {
    {"process_group", "parallel.fsdp.mesh.replicate, parallel.fsdp.mesh.shard",
     "groups by their sizes; or parallel.fsdp.shard_group_size"},
    {"sharding_strategy", "parallel.sharding_strategy",
     "the same names; the default here is HYBRID_SHARD, as in ml, torch's is FULL_SHARD"},
    {"cpu_offload", "parallel.cpu_offload", "shards, gradients and the optimizer stay on the CPU"},
    {"auto_wrap_policy", "parallel.fsdp.auto_wrap.policy",
     "unit: each block of the model; torch's default is none"},
    {"backward_prefetch", "parallel.fsdp.backward_prefetch", ""},
    {"mixed_precision", "parallel.fsdp.mixed_precision", ""},
    {"ignored_modules", "parallel.fsdp.ignored_modules", "dotted names"},
    {"ignored_states", "parallel.fsdp.ignored_modules",
     "modules by dotted name; single parameters are not left out"},
    {"ignored_parameters", "parallel.fsdp.ignored_modules",
     "modules by dotted name; single parameters are not left out"},
    {"param_init_fn", "parallel.fsdp.deferred_init",
     "a model is built without values and initialised shard by shard, by its own initialisation"},
    {"device_id", "parallel.device", "a rank has one device, chosen by its local rank"},
    {"sync_module_states", "parallel.sync_module_states", "true here, false in torch"},
    {"forward_prefetch", "parallel.fsdp.forward_prefetch", "auto: where passes repeat each other"},
    {"limit_all_gathers", "parallel.fsdp.limit_all_gathers", "true is the only way"},
    {"use_orig_params", "", "parameters keep their names, shapes and groups always, as with true"},
    {"device_mesh", "parallel.fsdp.mesh.replicate, parallel.fsdp.mesh.shard", "its two sizes"},
};

constexpr Word kMixedPrecisionCPUOffloadPolicies[] = {
    {"param_dtype", "parallel.fsdp.mixed_precision.param_dtype", ""},
    {"reduce_dtype", "parallel.fsdp.mixed_precision.reduce_dtype", ""},
    {"buffer_dtype", "parallel.fsdp.mixed_precision.buffer_dtype", ""},
    {"keep_low_precision_grads", "parallel.fsdp.mixed_precision.keep_low_precision_grads", ""},
    {"cast_forward_inputs", "parallel.fsdp.mixed_precision.cast_forward_inputs",
     "units and the root alike; true here, false in torch"},
    {"cast_root_forward_inputs", "parallel.fsdp.mixed_precision.cast_forward_inputs",
     "units and the root alike"},
    {"_module_classes_to_ignore", "parallel.fsdp.ignored_modules",
     "modules by dotted name; batch norms are not left out by class"},
    {"offload_params", "parallel.cpu_offload", ""},
    {"min_num_params", "parallel.fsdp.auto_wrap.min_params", "with auto_wrap.policy: size"},
    {"transformer_layer_cls", "parallel.fsdp.auto_wrap.names",
     "with auto_wrap.policy: by_name; units are found without it"},
    {"exclude_wrap_modules", "parallel.fsdp.auto_wrap.names", "name the ones to wrap"},
};

constexpr Word kStateAndGradients[] = {
    {"state_dict_type", "",
     "checkpoints are sharded, and read on any number of ranks; trainer checkpoint export writes a "
     "whole one"},
    {"state_dict_config", "", "checkpoints are sharded, and read on any number of ranks"},
    {"optim_state_dict_config", "", "checkpoints are sharded, and read on any number of ranks"},
    {"no_sync", "parallel.fsdp.accumulated_gradients",
     "whole: as no_sync; sharded: reduced each time, for less memory"},
    {"clip_grad_norm_", "training.clip_grad_norm", "over the shards of all ranks"},
};

constexpr Word kScriptsOfTutorials[] = {
    {"fsdp_activation_checkpointing", "activation_checkpointing.policy", "unit: each block"},
    {"batch_size_training", "training.batch_size", "samples a rank and micro-batch"},
    {"num_workers_dataloader", "task.data.loader.num_workers", "background threads, not processes"},
};

constexpr Chapter kChapters[] = {
    {"FullyShardedDataParallel", kFullyShardedDataParallel},
    {"MixedPrecision, CPUOffload, policies", kMixedPrecisionCPUOffloadPolicies},
    {"State and gradients", kStateAndGradients},
    {"Scripts of tutorials", kScriptsOfTutorials},
};

}  // namespace

constinit const Peer kFsdp1{"PyTorch FSDP1", "Plain PyTorch with FullyShardedDataParallel",
                            kChapters};

}  // namespace phalanx::words
