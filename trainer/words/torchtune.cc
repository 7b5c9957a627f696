// SPDX-License-Identifier: Apache-2.0
#include "trainer/words/peers.h"

namespace phalanx::words {
namespace {

constexpr Word kComponents[] = {
    {"_component_", "", "name picks a class"},
    {"tokenizer", "task.data.source.tokenizer", "instruction_tuning: task.data.tokenizer"},
    {"tokenizer.path", "task.data.source.tokenizer", ""},
    {"tokenizer.max_seq_len", "task.data.sequence_length", ""},
    {"dataset", "task.name", "a task brings its data: task.data (docs/data.md)"},
    {"dataset.packed", "task.data.sequence_length",
     "language_modeling cuts sequences out of joined documents"},
    {"dataset.source", "task.data.path", ""},
    {"dataset.split", "validation.sets", ""},
    {"dataset.train_on_input", "", "instruction_tuning learns the answers alone"},
    {"dataset_val", "validation.sets", ""},
    {"run_val_every_n_steps", "validation.every_n_steps", ""},
    {"batch_size_val", "training.batch_size", "validation takes the batch size of training"},
    {"loss", "task.loss.chunk", "the task's loss, in chunks where the vocabulary is large"},
};

constexpr Word kCheckpoints[] = {
    {"checkpointer", "checkpoint.load_from", ""},
    {"checkpointer.checkpoint_dir", "checkpoint.load_from", "a Hugging Face folder"},
    {"checkpointer.checkpoint_files", "checkpoint.load_from", "a folder names them itself"},
    {"checkpointer.recipe_checkpoint", "checkpoint.resume", "exp_dir=FOLDER goes on"},
    {"checkpointer.output_dir", "exp_dir", ""},
    {"checkpointer.model_type", "model.name", ""},
    {"checkpointer.adapter_checkpoint", "checkpoint.resume", "exp_dir=FOLDER goes on"},
    {"checkpointer.keep_last_n_checkpoints", "checkpoint.keep_last", ""},
    {"resume_from_checkpoint", "checkpoint.resume",
     "exp_dir=FOLDER goes on; checkpoint.load_from begins with other weights"},
    {"save_adapter_weights_only", "lora.target_modules",
     "adapters alone are saved, unless they are merged"},
    {"enable_async_checkpointing", "checkpoint.async", ""},
    {"save_last_epoch_only", "checkpoint.save_every_n_steps", "counted in steps"},
    {"save_every_n_steps", "checkpoint.save_every_n_steps", ""},
};

constexpr Word kTraining[] = {
    {"batch_size", "training.batch_size", "samples a rank and micro-batch"},
    {"epochs", "training.max_epochs", ""},
    {"max_steps_per_epoch", "training.max_steps_per_epoch", ""},
    {"gradient_accumulation_steps", "training.gradient_accumulation_steps", ""},
    {"clip_grad_norm", "training.clip_grad_norm", ""},
    {"optimizer_in_bwd", "", "the update comes after the backward pass, when its norm is known"},
    {"optimizer.fused", "", "each optimizer has one implementation, fused over its tensors"},
    {"lr_scheduler.num_warmup_steps", "lr_scheduler.warmup_steps", ""},
    {"lr_scheduler.num_cycles", "lr_scheduler.name",
     "cosine_with_restarts counts cycles by cycle_steps"},
    {"seed", "training.seed", ""},
    {"shuffle", "task.data.loader.shuffle", ""},
    {"cudnn_deterministic_mode", "training.deterministic", ""},
};

constexpr Word kTheModelAndLoRA[] = {
    {"model.lora_attn_modules", "lora.target_modules", "names of linear layers"},
    {"model.apply_lora_to_mlp", "lora.target_modules", "names of linear layers"},
    {"model.apply_lora_to_output", "lora.target_modules", "names of linear layers"},
    {"model.lora_rank", "lora.r", ""},
    {"model.lora_alpha", "lora.lora_alpha", ""},
    {"model.lora_dropout", "lora.lora_dropout", ""},
    {"model.use_dora", "", "no DoRA"},
    {"model.quantize_base", "", "no quantised weights"},
};

constexpr Word kTheMachine[] = {
    {"device", "parallel.device", "auto, cpu or cuda"},
    {"dtype", "mixed_precision.enabled, mixed_precision.dtype",
     "mixed_precision=bf16 keeps weights in float32; bf16 there makes the weights bfloat16 too"},
    {"compile", "", "no compiler; on CPUs compute.gemm finds the fastest matrix products"},
    {"enable_activation_checkpointing", "activation_checkpointing.policy", "unit: each block"},
    {"enable_activation_offloading", "activation_checkpointing.policy",
     "kept inputs stay on the device"},
    {"ac_mode", "activation_checkpointing.policy", ""},
    {"ac_option", "activation_checkpointing.n", ""},
    {"custom_sharded_layers", "parallel.fsdp.auto_wrap.names", "with auto_wrap.policy: by_name"},
    {"fsdp_cpu_offload", "parallel.cpu_offload", ""},
    {"fsdp_reshard_after_forward", "parallel.fsdp.reshard_after_forward", ""},
    {"tensor_parallel_dim", "", "no tensor parallelism"},
    {"tensor_parallel_plan", "", "no tensor parallelism"},
    {"context_parallel_dim", "", "no context parallelism"},
    {"data_parallel_replicate_dim", "parallel.fsdp.mesh.replicate",
     "with parallel.sharding_strategy: HYBRID_SHARD"},
    {"data_parallel_shard_dim", "parallel.fsdp.mesh.shard",
     "with parallel.sharding_strategy: HYBRID_SHARD"},
};

constexpr Word kLogging[] = {
    {"metric_logger", "logging.sinks", "jsonl, progress, tensorboard"},
    {"metric_logger.log_dir", "log_dir_name", "within exp_dir"},
    {"output_dir", "exp_dir", ""},
    {"log_every_n_steps", "logging.every_n_steps", ""},
    {"log_peak_memory_stats", "", "memory is not logged (docs/metrics.md)"},
    {"log_level", "logging.sinks", ""},
    {"profiler", "", "no profiler; the log has step_seconds and data_seconds"},
};

constexpr Chapter kChapters[] = {
    {"Components", kComponents},  {"Checkpoints", kCheckpoints},
    {"Training", kTraining},      {"The model and LoRA", kTheModelAndLoRA},
    {"The machine", kTheMachine}, {"Logging", kLogging},
};

}  // namespace

constinit const Peer kTorchTune{"torchtune", "torchtune's recipes", kChapters};

}  // namespace phalanx::words
