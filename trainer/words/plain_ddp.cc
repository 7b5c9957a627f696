// SPDX-License-Identifier: Apache-2.0
#include "trainer/words/peers.h"

namespace phalanx::words {
namespace {

constexpr Word kDistributedDataParallel[] = {
    {"device_ids", "", "a rank has one device, chosen by its local rank"},
    {"output_device", "", "a rank has one device, chosen by its local rank"},
    {"dim", "", "a rank gets samples of its own; no batch is scattered"},
    {"broadcast_buffers", "parallel.ddp.broadcast_buffers", ""},
    {"init_sync", "parallel.sync_module_states", ""},
    {"process_group", "",
     "DDP spans all ranks; fsdp.mesh and fsdp.shard_group_size cut FSDP's groups"},
    {"bucket_cap_mb", "parallel.ddp.bucket_cap_mb", ""},
    {"bucket_cap_mb_list", "parallel.ddp.bucket_cap_mb",
     "one size; only the first bucket has another, 1 MiB, where none is set"},
    {"find_unused_parameters", "parallel.ddp.find_unused_parameters", ""},
    {"check_reduction", "parallel.ddp.check_reduction",
     "torch ignores it; here each forward pass checks that the last backward's reductions were "
     "issued"},
    {"gradient_as_bucket_view", "parallel.ddp.gradient_as_bucket_view", ""},
    {"static_graph", "parallel.ddp.static_graph", ""},
    {"delay_all_reduce_named_params", "",
     "gradients are reduced as their buckets fill; no_sync over micro-batches delays all of them"},
    {"param_to_hook_all_reduce", "", "gradients are reduced as their buckets fill"},
    {"mixed_precision", "mixed_precision.enabled, mixed_precision.dtype",
     "autocast with weights in float32; DDP's own param_dtype and buffer_dtype exist in FSDP "
     "alone"},
    {"device_mesh", "", "DDP spans all ranks; FSDP has parallel.fsdp.mesh"},
    {"skip_all_reduce_unused_params", "",
     "gradients of unused parameters are reduced as zeros, so that all ranks step alike"},
    {"register_comm_hook", "parallel.ddp.comm_hook.name",
     "allreduce, bf16_compress, fp16_compress, powerSGD, batched_powerSGD or post_localSGD; a hook "
     "of your own registers itself (docs/add_a_class.md)"},
    {"PowerSGDState", "parallel.ddp.comm_hook.name",
     "powerSGD or batched_powerSGD; its fields stand beside the name, as they are called there"},
    {"powerSGD_hook", "parallel.ddp.comm_hook.name", "powerSGD, with PowerSGDState's fields"},
    {"batched_powerSGD_hook", "parallel.ddp.comm_hook.name",
     "batched_powerSGD, with PowerSGDState's fields"},
    {"PostLocalSGDState", "parallel.ddp.comm_hook.name",
     "post_localSGD, with the fields of the state and of PeriodicModelAverager"},
    {"post_localSGD_hook", "parallel.ddp.comm_hook.name", "post_localSGD"},
    {"PostLocalSGDOptimizer", "parallel.ddp.comm_hook.name",
     "post_localSGD; it averages after the steps of any optimizer"},
    {"PeriodicModelAverager", "parallel.ddp.comm_hook.name",
     "post_localSGD; warmup_steps is start_localSGD_iter"},
    {"join", "",
     "ranks without samples take part in a step with none; a loop of your own has "
     "DistributedDataParallel::join (docs/library.md)"},
    {"no_sync", "training.gradient_accumulation_steps",
     "micro-batches before a step's last are not reduced; nothing to set"},
};

constexpr Word kDataParallel[] = {
    {"device_ids", "parallel.data_parallel.devices",
     "of DataParallel: GPUs of one process; ranks (strategy: ddp) are faster"},
    {"output_device", "", "of DataParallel: the first device, which keeps the model"},
    {"dim", "", "of DataParallel: samples are cut along the first dimension"},
};

constexpr Word kInitProcessGroup[] = {
    {"backend", "parallel.device", "NCCL for tensors on GPUs, Gloo for those in host memory"},
    {"init_method", "",
     "the address comes from the launcher's variables (docs/launch.md); in a program: "
     "environment_at"},
    {"world_size", "launcher.processes",
     "ranks of this host; several hosts: trainer launch --nnodes"},
    {"rank", "", "given by the launcher's variables (docs/launch.md)"},
    {"pg_options", "", "the process groups have the options that this program needs"},
    {"group_name", "", "the process groups have names of their own"},
};

constexpr Word kDataLoaderDistributedSampler[] = {
    {"sampler", "task.data.loader.shuffle, task.data.loader.order",
     "each rank gets its share without a sampler"},
    {"batch_sampler", "training.batch_size, task.data.loader.sort_window", ""},
    {"num_replicas", "launcher.processes", "samples are dealt to all ranks that there are"},
    {"collate_fn", "", "a task puts its batches together (docs/add_a_task.md)"},
    {"pin_memory", "", "batches are pinned where ranks compute on GPUs"},
    {"pin_memory_device", "", "batches are pinned where ranks compute on GPUs"},
    {"worker_init_fn", "", "workers are threads, and draw no numbers of their own"},
    {"multiprocessing_context", "", "workers are threads"},
    {"prefetch_factor", "task.data.loader.prefetch_batches",
     "batches that each worker keeps ready"},
    {"persistent_workers", "", "workers live as long as the run"},
    {"in_order", "", "batches come in order, whatever the number of workers"},
    {"num_workers", "task.data.loader.num_workers", "background threads, not processes"},
    {"shuffle", "task.data.loader.shuffle", ""},
    {"drop_last", "task.data.loader.drop_last",
     "where it is false the last micro-batches are evened out over the ranks; padding samples do "
     "not count"},
    {"batch_size", "training.batch_size", "samples a rank and micro-batch"},
    {"dataset", "task.name", "a task brings its data: task.data (docs/data.md)"},
};

constexpr Word kTheLoop[] = {
    {"epochs", "training.max_epochs", ""},
    {"lr", "optimizer.lr", ""},
    {"momentum", "optimizer.momentum", ""},
    {"weight_decay", "optimizer.weight_decay", ""},
    {"betas", "optimizer.betas", ""},
    {"set_to_none", "", "gradients are always dropped, not filled with zeros"},
    {"max_norm", "training.clip_grad_norm", "the 2-norm over all ranks' parameters"},
    {"clip_value", "training.clip_grad_value", ""},
    {"norm_type", "training.clip_grad_norm", "only the 2-norm"},
    {"error_if_nonfinite", "training.stop_on_nonfinite_loss", ""},
    {"autocast", "mixed_precision.enabled, mixed_precision.dtype", ""},
    {"init_scale", "mixed_precision.init_scale", ""},
    {"growth_factor", "mixed_precision.growth_factor", ""},
    {"backoff_factor", "mixed_precision.backoff_factor", ""},
    {"growth_interval", "mixed_precision.growth_interval", ""},
    {"manual_seed", "training.seed", ""},
    {"set_float32_matmul_precision", "training.float32_matmul_precision", ""},
    {"use_deterministic_algorithms", "training.deterministic",
     "also sets cuDNN's and oneDNN's flags"},
    {"warn_only", "training.deterministic_warn_only", ""},
    {"compile", "", "no compiler; on CPUs compute.gemm finds the fastest matrix products"},
};

constexpr Word kTorchrun[] = {
    {"nnodes", "launcher.processes", "ranks of this host; several hosts: trainer launch --nnodes"},
    {"nproc_per_node", "launcher.processes", "or trainer launch --nproc-per-node"},
    {"node_rank", "", "trainer launch --node-rank"},
    {"master_addr", "", "trainer launch --master-addr, or the variable MASTER_ADDR"},
    {"master_port", "", "trainer launch --master-port, or the variable MASTER_PORT"},
    {"rdzv_backend", "", "trainer launch --rdzv-backend"},
    {"rdzv_endpoint", "", "trainer launch --rdzv-endpoint"},
    {"rdzv_id", "", "trainer launch --rdzv-id"},
    {"max_restarts", "", "trainer launch --max-restarts"},
    {"standalone", "launcher.processes", "one host needs no rendezvous"},
    {"RANK", "", "a variable, read as the launcher sets it (docs/ranks.md)"},
    {"LOCAL_RANK", "", "a variable, read as the launcher sets it (docs/ranks.md)"},
    {"WORLD_SIZE", "", "a variable, read as the launcher sets it (docs/ranks.md)"},
    {"MASTER_ADDR", "", "a variable, read as the launcher sets it (docs/ranks.md)"},
    {"MASTER_PORT", "", "a variable, read as the launcher sets it (docs/ranks.md)"},
};

constexpr Chapter kChapters[] = {
    {"DistributedDataParallel", kDistributedDataParallel},
    {"DataParallel", kDataParallel},
    {"init_process_group", kInitProcessGroup},
    {"DataLoader, DistributedSampler", kDataLoaderDistributedSampler},
    {"The loop", kTheLoop},
    {"torchrun", kTorchrun},
};

}  // namespace

constinit const Peer kPlainDdp{"PyTorch DDP", "Plain PyTorch with DistributedDataParallel",
                               kChapters};

}  // namespace phalanx::words
