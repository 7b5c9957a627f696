// SPDX-License-Identifier: Apache-2.0
#include "trainer/words/peers.h"

namespace phalanx::words {
namespace {

constexpr Word kTheBatchAndThe[] = {
    {"output_dir", "exp_dir", ""},
    {"per_device_train_batch_size", "training.batch_size", "samples a rank and micro-batch"},
    {"per_device_eval_batch_size", "training.batch_size",
     "validation takes the batch size of training; predict.batch_size is its own"},
    {"gradient_accumulation_steps", "training.gradient_accumulation_steps", ""},
    {"num_train_epochs", "training.max_epochs", "whole epochs"},
    {"max_steps", "training.max_steps", ""},
    {"auto_find_batch_size", "training.batch_size",
     "a run that does not fit into memory is refused before it starts"},
    {"average_tokens_across_devices", "",
     "the loss is the mean over the tokens of all ranks, always"},
};

constexpr Word kTheOptimizerAndThe[] = {
    {"learning_rate", "optimizer.lr", ""},
    {"lr_scheduler_type", "lr_scheduler.name",
     "linear, cosine, constant, polynomial, inverse_sqrt, plateau, ...; constant is the default "
     "here, linear there"},
    {"lr_scheduler_kwargs", "lr_scheduler.name", "that schedule's own fields"},
    {"warmup_steps", "lr_scheduler.warmup_steps", "steps, not a share of the run"},
    {"warmup_ratio", "lr_scheduler.warmup_steps", "as a number of steps"},
    {"optim", "optimizer.name", "adamw, adam, adafactor, adagrad, rmsprop, sgd, lion, muon"},
    {"optim_args", "optimizer.name", "that optimizer's own fields"},
    {"optim_target_modules", "optimizer.groups", "parameters by name"},
    {"weight_decay", "optimizer.weight_decay",
     "vectors and embeddings do not decay; there biases and norms do not"},
    {"adam_beta1", "optimizer.betas", "the first of two"},
    {"adam_beta2", "optimizer.betas", "the second of two"},
    {"adam_epsilon", "optimizer.eps", ""},
    {"adafactor", "optimizer.name", ""},
    {"max_grad_norm", "training.clip_grad_norm",
     "null, no clipping, is the default here, 1.0 there"},
    {"label_smoothing_factor", "task.loss.label_smoothing", ""},
    {"neftune_noise_alpha", "", "no noise is added to embeddings"},
};

constexpr Word kPrecisionMemoryAndSpeed[] = {
    {"bf16", "mixed_precision.enabled, mixed_precision.dtype", "mixed_precision=bf16"},
    {"fp16", "mixed_precision.enabled, mixed_precision.dtype", "mixed_precision=fp16"},
    {"half_precision_backend", "mixed_precision.enabled", "LibTorch's autocast"},
    {"bf16_full_eval", "mixed_precision.enabled", "validation computes as training does"},
    {"fp16_full_eval", "mixed_precision.enabled", "validation computes as training does"},
    {"tf32", "training.float32_matmul_precision", "high"},
    {"activation_checkpointing_kwargs", "activation_checkpointing.policy", ""},
    {"gradient_checkpointing", "activation_checkpointing.policy", "unit: each block"},
    {"gradient_checkpointing_kwargs", "activation_checkpointing.policy", ""},
    {"torch_compile", "", "no compiler; on CPUs compute.gemm finds the fastest matrix products"},
    {"torch_compile_backend", "", "no compiler"},
    {"torch_compile_mode", "", "no compiler"},
    {"use_liger_kernel", "task.loss.chunk",
     "the loss is computed in chunks; other kernels are LibTorch's"},
    {"liger_kernel_config", "task.loss.chunk",
     "the loss is computed in chunks; other kernels are LibTorch's"},
    {"use_cache", "task.generation.use_cache", "in training no cache is made"},
    {"torch_empty_cache_steps", "", "the allocator keeps memory for the next step"},
};

constexpr Word kLogging[] = {
    {"logging_strategy", "logging.every_n_steps", ""},
    {"logging_steps", "logging.every_n_steps", "10 here, 500 there"},
    {"logging_first_step", "logging.every_n_steps", "the first step is always logged"},
    {"logging_dir", "log_dir_name", "within exp_dir"},
    {"log_on_each_node", "", "rank 0 logs"},
    {"logging_nan_inf_filter", "training.stop_on_nonfinite_loss", "such a loss ends the run"},
    {"include_num_input_tokens_seen", "", "tokens are counted and logged always"},
    {"include_tokens_per_second", "", "tokens_per_second is logged always"},
    {"log_level", "logging.sinks", ""},
    {"log_level_replica", "", "rank 0 logs"},
    {"disable_tqdm", "logging.sinks", "without the sink progress"},
    {"report_to", "logging.sinks", "jsonl, progress, tensorboard"},
    {"run_name", "exp_name", ""},
    {"project", "about.tags", ""},
    {"trackio_space_id", "", "no sink for it"},
    {"trackio_bucket_id", "", "no sink for it"},
    {"trackio_static_space_id", "", "no sink for it"},
};

constexpr Word kValidation[] = {
    {"eval_strategy", "validation.every_n_steps, validation.every_n_epochs", ""},
    {"eval_steps", "validation.every_n_steps", ""},
    {"eval_delay", "validation.every_n_steps", "validations begin with the first that is due"},
    {"prediction_loss_only", "validation.generate.n",
     "0: values of the loss and the task's metrics alone"},
    {"eval_on_start", "validation.at_start", ""},
    {"eval_do_concat_batches", "", "metrics are added up batch by batch"},
    {"eval_use_gather_object", "", "metrics are added up over the ranks"},
    {"eval_accumulation_steps", "", "metrics are added up batch by batch"},
    {"include_for_metrics", "", "a task's metrics see the batch (docs/add_a_task.md)"},
    {"include_inputs_for_metrics", "", "a task's metrics see the batch (docs/add_a_task.md)"},
    {"batch_eval_metrics", "", "metrics are added up batch by batch"},
    {"predict_with_generate", "validation.generate.n", ""},
    {"generation_max_length", "task.generation.max_new_tokens",
     "of what is written, without the prompt"},
    {"generation_num_beams", "task.generation.num_beams", ""},
    {"load_best_model_at_end", "checkpoint.keep_best.metric", "RUN@best names it"},
    {"metric_for_best_model", "checkpoint.keep_best.metric", ""},
    {"greater_is_better", "checkpoint.keep_best.mode", ""},
};

constexpr Word kCheckpoints[] = {
    {"save_only_model", "", "a checkpoint is whole; trainer checkpoint export takes the weights"},
    {"save_strategy", "checkpoint.save_every_n_steps", "or checkpoint.save_every_n_seconds"},
    {"save_steps", "checkpoint.save_every_n_steps", "200 here, 500 there"},
    {"save_on_each_node", "", "all ranks write into one folder that they share"},
    {"save_total_limit", "checkpoint.keep_last", ""},
    {"save_safetensors", "", "checkpoints are safetensors"},
    {"enable_jit_checkpoint", "", "SIGTERM saves and ends the run"},
    {"push_to_hub", "", "trainer checkpoint export writes a folder for the hub"},
    {"hub_token", "", "trainer checkpoint export writes a folder for the hub"},
    {"hub_private_repo", "", "trainer checkpoint export writes a folder for the hub"},
    {"hub_model_id", "", "trainer checkpoint export writes a folder for the hub"},
    {"hub_strategy", "", "trainer checkpoint export writes a folder for the hub"},
    {"hub_always_push", "", "trainer checkpoint export writes a folder for the hub"},
    {"hub_revision", "", "trainer checkpoint export writes a folder for the hub"},
    {"ignore_data_skip", "checkpoint.data_may_change",
     "a resumed run goes on at its place in the data"},
    {"restore_callback_states_from_checkpoint", "checkpoint.resume",
     "a resumed run has all of its state"},
    {"resume_from_checkpoint", "checkpoint.resume",
     "exp_dir=FOLDER goes on; checkpoint.load_from begins with other weights"},
};

constexpr Word kRandomNumbers[] = {
    {"full_determinism", "training.deterministic", ""},
    {"seed", "training.seed", "0 here, 42 there"},
    {"data_seed", "training.seed", ""},
};

constexpr Word kRanks[] = {
    {"use_cpu", "parallel.device", "cpu"},
    {"no_cuda", "parallel.device", "cpu"},
    {"accelerator_config", "training.batch_size", "batches are a rank's, never split"},
    {"parallelism_config", "parallel.fsdp.mesh.replicate, parallel.fsdp.mesh.shard",
     "no tensor parallelism"},
    {"ddp_find_unused_parameters", "parallel.ddp.find_unused_parameters", ""},
    {"ddp_bucket_cap_mb", "parallel.ddp.bucket_cap_mb", ""},
    {"ddp_broadcast_buffers", "parallel.ddp.broadcast_buffers", ""},
    {"ddp_static_graph", "parallel.ddp.static_graph", ""},
    {"ddp_backend", "parallel.device", "NCCL for tensors on GPUs, Gloo for those in host memory"},
    {"ddp_timeout", "parallel.timeout", "a duration: 30m"},
    {"fsdp", "parallel.use_fsdp, parallel.sharding_strategy", "parallel=fsdp"},
    {"fsdp_config", "parallel.fsdp", "its keys: below"},
    {"deepspeed", "parallel.sharding_strategy", "ZeRO 2 is SHARD_GRAD_OP, ZeRO 3 FULL_SHARD"},
    {"local_rank", "", "given by the launcher's variables (docs/launch.md)"},
};

constexpr Word kData[] = {
    {"dataloader_drop_last", "task.data.loader.drop_last", ""},
    {"dataloader_num_workers", "task.data.loader.num_workers",
     "background threads, not processes; 1 here, 0 there"},
    {"dataloader_pin_memory", "", "batches are pinned where ranks compute on GPUs"},
    {"dataloader_persistent_workers", "", "workers live as long as the run"},
    {"dataloader_prefetch_factor", "task.data.loader.prefetch_batches",
     "batches that each worker keeps ready"},
    {"dataloader_multiprocessing_context", "", "workers are threads"},
    {"dataloader_in_order", "", "batches come in order, whatever the number of workers"},
    {"remove_unused_columns", "", "a task reads the fields that it names"},
    {"label_names", "", "a task's batch has its targets"},
    {"train_sampling_strategy", "task.data.loader.shuffle, task.data.loader.sort_window", ""},
    {"group_by_length", "task.data.loader.sort_window", ""},
    {"length_column_name", "task.data.loader.sort_window", "lengths are measured"},
};

constexpr Word kWhatIsDone[] = {
    {"debug", "anomaly.detect", "in the trainer supervised_debug"},
    {"skip_memory_metrics", "", "memory is not logged (docs/metrics.md)"},
    {"do_train", "", "trainer train"},
    {"do_eval", "", "trainer evaluate"},
    {"do_predict", "", "trainer predict"},
    {"jit_mode_eval", "", "no compiler"},
};

constexpr Word kLoraConfig[] = {
    {"lora_alpha", "lora.lora_alpha", ""},
    {"lora_dropout", "lora.lora_dropout", ""},
    {"target_modules", "lora.target_modules", ""},
};

constexpr Word kAccelerateSFsdpConfig[] = {
    {"fsdp_version", "",
     "one FSDP: parameters flattened as in FSDP1, with FSDP2's reshard_after_forward"},
    {"fsdp_sharding_strategy", "parallel.sharding_strategy", ""},
    {"fsdp_reshard_after_forward", "parallel.fsdp.reshard_after_forward", ""},
    {"fsdp_backward_prefetch", "parallel.fsdp.backward_prefetch", ""},
    {"fsdp_backward_prefetch_policy", "parallel.fsdp.backward_prefetch", ""},
    {"fsdp_forward_prefetch", "parallel.fsdp.forward_prefetch", ""},
    {"fsdp_auto_wrap_policy", "parallel.fsdp.auto_wrap.policy",
     "unit is TRANSFORMER_BASED_WRAP, size SIZE_BASED_WRAP"},
    {"fsdp_transformer_layer_cls_to_wrap", "parallel.fsdp.auto_wrap.names",
     "with auto_wrap.policy: by_name; units are found without it"},
    {"fsdp_min_num_params", "parallel.fsdp.auto_wrap.min_params", "with auto_wrap.policy: size"},
    {"fsdp_offload_params", "parallel.cpu_offload", ""},
    {"fsdp_sync_module_states", "parallel.sync_module_states", ""},
    {"fsdp_cpu_ram_efficient_loading", "parallel.fsdp.deferred_init",
     "a checkpoint is read straight into shards"},
    {"fsdp_use_orig_params", "",
     "parameters keep their names, shapes and groups always, as with true"},
    {"fsdp_state_dict_type", "", "checkpoints are sharded, and read on any number of ranks"},
    {"fsdp_activation_checkpointing", "activation_checkpointing.policy", "unit: each block"},
    {"fsdp_limit_all_gathers", "parallel.fsdp.limit_all_gathers", "true is the only way"},
    {"mixed_precision_policy", "parallel.fsdp.mixed_precision", ""},
    {"transformer_layer_cls_to_wrap", "parallel.fsdp.auto_wrap.names",
     "with auto_wrap.policy: by_name; units are found without it"},
    {"transformer_cls_names_to_wrap", "parallel.fsdp.auto_wrap.names",
     "with auto_wrap.policy: by_name; units are found without it"},
    {"min_num_params", "parallel.fsdp.auto_wrap.min_params", "with auto_wrap.policy: size"},
    {"activation_checkpointing_offload", "activation_checkpointing.policy",
     "kept inputs stay on the device"},
    {"cpu_ram_efficient_loading", "parallel.fsdp.deferred_init",
     "a checkpoint is read straight into shards"},
    {"xla", "", "no XLA"},
    {"num_processes", "launcher.processes", "ranks of this host"},
    {"num_machines", "", "trainer launch --nnodes (docs/launch.md)"},
    {"machine_rank", "", "trainer launch --node-rank"},
    {"main_process_ip", "", "trainer launch --master-addr"},
    {"main_process_port", "", "trainer launch --master-port"},
    {"distributed_type", "parallel.use_fsdp", ""},
};

constexpr Chapter kChapters[] = {
    {"The batch and the length", kTheBatchAndThe},
    {"The optimizer and the schedule", kTheOptimizerAndThe},
    {"Precision, memory and speed", kPrecisionMemoryAndSpeed},
    {"Logging", kLogging},
    {"Validation", kValidation},
    {"Checkpoints", kCheckpoints},
    {"Random numbers", kRandomNumbers},
    {"Ranks", kRanks},
    {"Data", kData},
    {"What is done", kWhatIsDone},
    {"LoraConfig", kLoraConfig},
    {"accelerate's fsdp_config", kAccelerateSFsdpConfig},
};

}  // namespace

constinit const Peer kTransformers{"transformers", "transformers' TrainingArguments", kChapters};

}  // namespace phalanx::words
