// SPDX-License-Identifier: Apache-2.0
#include "trainer/words/peers.h"

namespace phalanx::words {
namespace {

constexpr Word kAutoUnit[] = {
    {"AutoUnit", "task.name",
     "a task: Task<Batch, ModelInterface> with compute_loss (docs/add_a_task.md)"},
    {"train_step", "", "the task's compute_loss, or its training_step (docs/add_a_task.md)"},
    {"eval_step", "", "the task's compute_loss and metrics (docs/add_a_task.md)"},
    {"predict_step", "", "the task's predict, by trainer predict"},
    {"compute_loss", "", "a method of the task (docs/add_a_task.md)"},
    {"State", "", "State::step, State::epoch and State::samples; hooks get it"},
    {"Callback", "", "a mixin with hooks (docs/add_a_class.md)"},
    {"init_from_env", "", "a function of the library (docs/library.md)"},
    {"configure_optimizers_and_lr_scheduler", "optimizer.name, lr_scheduler.name",
     "learning rates by part in optimizer.groups; several optimizers: optimizers"},
    {"strategy", "parallel.use_fsdp",
     "strategy: ddp, or with fields: strategy: {name: ddp, ...}, is a key at the top here, too"},
    {"module", "model.name", ""},
    {"device", "parallel.device", "auto, cpu or cuda; a rank's GPU is that of its local rank"},
    {"step_lr_interval", "training.step_lr_interval", "step or epoch"},
    {"precision", "mixed_precision.enabled, mixed_precision.dtype",
     "mixed_precision=bf16 or mixed_precision=fp16"},
    {"gradient_accumulation_steps", "training.gradient_accumulation_steps",
     "or training.global_batch_size"},
    {"detect_anomaly", "anomaly.detect", "in the trainer supervised_debug"},
    {"clip_grad_norm", "training.clip_grad_norm", ""},
    {"clip_grad_value", "training.clip_grad_value", ""},
    {"swa_params", "averages.method", "ema or swa"},
    {"torch_compile_params", "",
     "no compiler; on CPUs compute.gemm finds the fastest matrix products"},
    {"activation_checkpoint_params", "activation_checkpointing.policy", ""},
    {"enable_compiled_autograd", "", "no compiler"},
    {"loss_backward_retain_graph", "",
     "a task's own training_step may ask for it (docs/add_a_task.md)"},
    {"enable_prefetch", "task.data.loader.prefetch_batches",
     "the next batch is copied to the GPU while a step computes, always"},
    {"zero_grad_at_train_step_start", "", "gradients are dropped after each update"},
    {"global_mesh", "parallel.fsdp.mesh.replicate, parallel.fsdp.mesh.shard",
     "no tensor parallelism"},
    {"enable_loss_parallel", "", "no tensor parallelism"},
};

constexpr Word kDDPStrategy[] = {
    {"comm_state", "parallel.ddp.comm_hook.name", "a hook's state is its own fields"},
    {"comm_hook", "parallel.ddp.comm_hook.name", "also as strategy: {name: ddp, comm_hook: NAME}"},
    {"sync_batchnorm", "parallel.sync_batchnorm", "in DDP and FSDP"},
    {"output_device", "", "a rank has one device, chosen by its local rank"},
    {"dim", "", "a rank gets samples of its own; no batch is scattered"},
    {"process_group", "",
     "DDP spans all ranks; fsdp.mesh and fsdp.shard_group_size cut FSDP's groups"},
    {"broadcast_buffers", "parallel.ddp.broadcast_buffers", ""},
    {"bucket_cap_mb", "parallel.ddp.bucket_cap_mb", ""},
    {"find_unused_parameters", "parallel.ddp.find_unused_parameters", ""},
    {"check_reduction", "parallel.ddp.check_reduction",
     "torch ignores it; here each forward pass checks that the last backward's reductions were "
     "issued"},
    {"gradient_as_bucket_view", "parallel.ddp.gradient_as_bucket_view", ""},
    {"static_graph", "parallel.ddp.static_graph", ""},
};

constexpr Word kFSDPStrategyAndFSDP2Strategy[] = {
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
    {"param_init_fn", "parallel.fsdp.deferred_init",
     "a model is built without values and initialised shard by shard, by its own initialisation"},
    {"sync_module_states", "parallel.sync_module_states", "true here, false in torch"},
    {"forward_prefetch", "parallel.fsdp.forward_prefetch", "auto: where passes repeat each other"},
    {"limit_all_gathers", "parallel.fsdp.limit_all_gathers", "true is the only way"},
    {"use_orig_params", "", "parameters keep their names, shapes and groups always, as with true"},
    {"state_dict_type", "",
     "checkpoints are sharded, and read on any number of ranks; trainer checkpoint export writes a "
     "whole one"},
    {"state_dict_config", "", "checkpoints are sharded, and read on any number of ranks"},
    {"optim_state_dict_config", "", "checkpoints are sharded, and read on any number of ranks"},
    {"modules_to_shard", "parallel.fsdp.auto_wrap.names", "with auto_wrap.policy: by_name"},
    {"shard_predicates", "parallel.fsdp.auto_wrap.policy", ""},
    {"reshard_after_forward", "parallel.fsdp.reshard_after_forward",
     "null: as parallel.sharding_strategy has it; a number: so many ranks keep a copy together"},
    {"mp_policy", "parallel.fsdp.mixed_precision", ""},
    {"shard_on_largest_dim", "",
     "parameters are flattened and cut evenly, as in FSDP1; a tensor's dimension is not chosen"},
};

constexpr Word kSWAParamsTorchCompileParamsActivationCheckpointParams[] = {
    {"warmup_steps_or_epochs", "averages.start", ""},
    {"step_or_epoch_update_freq", "averages.every_n_steps, averages.every_n_epochs", ""},
    {"use_buffers", "averages.buffers", ""},
    {"averaging_method", "averages.method", ""},
    {"ema_decay", "averages.decay", ""},
    {"swalr_params", "lr_scheduler.name", "chain, with a constant schedule at its end"},
    {"checkpoint_impl", "activation_checkpointing.policy",
     "one way: inputs are kept, the rest is computed again"},
    {"check_fn", "activation_checkpointing.names", "with activation_checkpointing.policy: by_name"},
    {"context_fn", "", "the whole unit is computed again, no single operations"},
};

constexpr Word kInitFromEnvSeed[] = {
    {"device_type", "parallel.device", ""},
    {"dist_init_method_type", "",
     "the address comes from the launcher's variables (docs/launch.md); in a program: "
     "environment_at"},
    {"pg_backend", "parallel.device", "NCCL for tensors on GPUs, Gloo for those in host memory"},
    {"pg_timeout", "parallel.timeout", ""},
    {"float32_matmul_precision", "training.float32_matmul_precision",
     "highest here, high in TorchTNT"},
    {"seed", "training.seed", ""},
    {"deterministic", "training.deterministic", ""},
};

constexpr Word kTrainEvaluatePredictFit[] = {
    {"max_epochs", "training.max_epochs", ""},
    {"max_steps", "training.max_steps", ""},
    {"max_train_steps_per_epoch", "training.max_steps_per_epoch", ""},
    {"max_steps_per_epoch", "training.max_steps_per_epoch", ""},
    {"max_eval_steps_per_epoch", "validation.max_batches",
     "samples at equal distances, not the first ones"},
    {"evaluate_every_n_steps", "validation.every_n_steps", ""},
    {"evaluate_every_n_epochs", "validation.every_n_epochs", ""},
    {"callbacks", "", "mixins with hooks (docs/add_a_class.md)"},
    {"timer", "", "no timer; the log has step_seconds and data_seconds"},
    {"train_dataloader", "task.name", "a task brings its data: task.data (docs/data.md)"},
    {"eval_dataloader", "validation.sets", "or the task's own validation data"},
};

constexpr Word kCheckpoints[] = {
    {"dirpath", "exp_dir", "checkpoints lie in exp_dir/checkpoints"},
    {"save_every_n_train_steps", "checkpoint.save_every_n_steps", ""},
    {"save_every_n_epochs", "checkpoint.save_every_n_steps",
     "counted in steps, or in seconds by checkpoint.save_every_n_seconds"},
    {"save_every_n_eval_epochs", "checkpoint.keep_best.metric",
     "with it each validation is followed by a save"},
    {"save_every_n_eval_steps", "checkpoint.keep_best.metric",
     "with it each validation is followed by a save"},
    {"save_every_n_predict_steps", "",
     "predictions are written row by row, and go on where they ended"},
    {"keep_last_n_checkpoints", "checkpoint.keep_last", ""},
    {"best_checkpoint_config", "checkpoint.keep_best.metric, checkpoint.keep_best.mode", ""},
    {"monitored_metric", "checkpoint.keep_best.metric", ""},
    {"async_checkpoint", "checkpoint.async", ""},
    {"knob_options", "", "all ranks write, each what it holds"},
    {"restore_from_latest", "checkpoint.resume", ""},
    {"restore_modules", "checkpoint.load_from",
     "checkpoint.load_model_only: true takes the weights alone"},
    {"restore_train_progress", "checkpoint.load_model_only", "false takes progress as well"},
    {"restore_eval_progress", "checkpoint.load_model_only", "an evaluation begins anew"},
    {"restore_optimizers", "checkpoint.load_model_only", "false takes the optimizer as well"},
    {"restore_lr_schedulers", "checkpoint.load_model_only", "schedules follow from the step"},
    {"strict", "checkpoint.load_strict", ""},
};

constexpr Chapter kChapters[] = {
    {"AutoUnit", kAutoUnit},
    {"DDPStrategy", kDDPStrategy},
    {"FSDPStrategy and FSDP2Strategy", kFSDPStrategyAndFSDP2Strategy},
    {"SWAParams, TorchCompileParams, ActivationCheckpointParams",
     kSWAParamsTorchCompileParamsActivationCheckpointParams},
    {"init_from_env, seed", kInitFromEnvSeed},
    {"train, evaluate, predict, fit", kTrainEvaluatePredictFit},
    {"Checkpoints", kCheckpoints},
};

}  // namespace

constinit const Peer kTorchTnt{"TorchTNT", "TorchTNT", kChapters};

}  // namespace phalanx::words
