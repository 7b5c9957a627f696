// SPDX-License-Identifier: Apache-2.0
#include "trainer/words/peers.h"

namespace phalanx::words {
namespace {

constexpr Word kTheTrainer[] = {
    {"trainer", "name", "its fields stand at the top or in sections of their own"},
    {"logger", "logging.sinks", "jsonl, progress, tensorboard"},
    {"base_run_dir", "exp_dir", "runs/EXP_NAME/run_N, or a folder by exp_dir"},
    {"run_id", "exp_dir", "counted: run_N"},
    {"load_from_ckpt_path", "checkpoint.load_from", ""},
    {"load_ckpt_strict", "checkpoint.load_strict", ""},
    {"valid_every_n_steps", "validation.every_n_steps", ""},
    {"valid_every_n_seconds", "validation.every_n_steps",
     "validations are counted in steps or epochs"},
    {"valid_first_n_seconds", "validation.at_start", ""},
    {"num_init_valid_steps", "validation.at_start",
     "one micro-batch of validation is tried before the first step, always; at_start takes all"},
    {"batches_per_step", "training.gradient_accumulation_steps",
     "gradients are averaged; ml adds them up"},
    {"batches_per_step_schedule", "training.gradient_accumulation_steps", "one number for the run"},
    {"batch_chunks_per_step_schedule", "training.batch_size", "one size for the run"},
    {"batch_dim", "", "a task puts its batches together (docs/add_a_task.md)"},
    {"clip_grad_norm", "training.clip_grad_norm",
     "after the loss scale is taken out; ml clips scaled gradients"},
    {"clip_grad_value", "training.clip_grad_value", ""},
    {"clip_grad_norm_type", "training.clip_grad_norm", "only the 2-norm"},
    {"deterministic", "training.deterministic", ""},
    {"use_tf32", "training.float32_matmul_precision", "high"},
    {"detect_anomaly", "anomaly.detect", "in the trainer supervised_debug"},
    {"torch_compile", "", "no compiler; on CPUs compute.gemm finds the fastest matrix products"},
    {"profiler", "", "no profiler; the log has step_seconds and data_seconds"},
    {"cpu_stats", "", "not logged (docs/metrics.md)"},
    {"gpu_stats", "", "not logged (docs/metrics.md)"},
    {"heartbeat", "parallel.timeout", "a rank that hangs is named, and all ranks end"},
    {"monitor_process", "", "the launcher watches the ranks"},
    {"step_wrapper", "", "errors name the step"},
};

constexpr Word kTheTaskAndIts[] = {
    {"max_epochs", "training.max_epochs", ""},
    {"max_steps", "training.max_steps", ""},
    {"max_samples", "training.max_samples", ""},
    {"dataloader", "task.data.loader", ""},
    {"train_dl", "task.data.loader", ""},
    {"valid_dl", "task.data.loader", "validation has the threads of training"},
    {"test_dl", "task.data.loader", "trainer evaluate has the threads of training"},
    {"batch_size", "training.batch_size", "samples a rank and micro-batch"},
    {"pin_memory", "", "batches are pinned where ranks compute on GPUs"},
    {"error_handling", "task.data.loader.max_broken",
     "how many samples may be left out because they cannot be read"},
    {"persistent_workers", "", "workers live as long as the run"},
};

constexpr Chapter kChapters[] = {
    {"The trainer", kTheTrainer},
    {"The task and its data", kTheTaskAndIts},
};

}  // namespace

constinit const Peer kMl{"ml", "ml", kChapters};

}  // namespace phalanx::words
