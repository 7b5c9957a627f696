// SPDX-License-Identifier: Apache-2.0
#include "trainer/words/peers.h"

namespace phalanx::words {
namespace {

constexpr Word kTrainer[] = {
    {"accelerator", "parallel.device", "auto, cpu or cuda"},
    {"strategy", "parallel.use_fsdp",
     "strategy: ddp, or with fields: strategy: {name: ddp, ...}, is a key at the top here, too"},
    {"devices", "launcher.processes",
     "ranks of this host, one GPU each; CUDA_VISIBLE_DEVICES chooses among several"},
    {"num_nodes", "", "trainer launch --nnodes (docs/launch.md)"},
    {"precision", "mixed_precision.enabled, mixed_precision.dtype",
     "mixed_precision=bf16 or mixed_precision=fp16; 64-true is use_double_weight_precision"},
    {"logger", "logging.sinks", ""},
    {"callbacks", "", "mixins with hooks (docs/add_a_class.md)"},
    {"fast_dev_run", "training.max_steps", "trainer config print checks a config without training"},
    {"max_epochs", "training.max_epochs", ""},
    {"min_epochs", "", "a run ends at its limits, or by early_stopping"},
    {"max_steps", "training.max_steps", ""},
    {"min_steps", "", "a run ends at its limits, or by early_stopping"},
    {"max_time", "training.max_seconds", ""},
    {"limit_train_batches", "training.max_steps_per_epoch", "optimizer steps, not micro-batches"},
    {"limit_val_batches", "validation.max_batches",
     "samples at equal distances, not the first ones"},
    {"limit_test_batches", "validation.max_batches", "of trainer evaluate"},
    {"limit_predict_batches", "", "trainer predict takes whole files"},
    {"overfit_batches", "", "give the task fewer data"},
    {"val_check_interval", "validation.every_n_steps", "steps, never a share of an epoch"},
    {"check_val_every_n_epoch", "validation.every_n_epochs", ""},
    {"num_sanity_val_steps", "validation.at_start",
     "one micro-batch of validation is tried before the first step, always; at_start takes all"},
    {"log_every_n_steps", "logging.every_n_steps", ""},
    {"enable_checkpointing", "checkpoint.save_every_n_steps", "null: not by steps"},
    {"enable_progress_bar", "logging.sinks", "the sink progress"},
    {"enable_model_summary", "", "the start of a run names the model and its number of parameters"},
    {"accumulate_grad_batches", "training.gradient_accumulation_steps",
     "or training.global_batch_size"},
    {"gradient_clip_val", "training.clip_grad_norm", "by value: training.clip_grad_value"},
    {"gradient_clip_algorithm", "training.clip_grad_norm, training.clip_grad_value", ""},
    {"deterministic", "training.deterministic, training.deterministic_warn_only",
     "warn is the second"},
    {"benchmark", "training.deterministic",
     "cuDNN's search is off with it; compute.gemm times matrix products on CPUs"},
    {"inference_mode", "", "validation and prediction compute without autograd"},
    {"use_distributed_sampler", "task.data.loader.order",
     "each rank gets its share without a sampler"},
    {"profiler", "", "no profiler; the log has step_seconds and data_seconds"},
    {"detect_anomaly", "anomaly.detect", "in the trainer supervised_debug"},
    {"barebones", "logging.sinks", "an empty list logs nothing"},
    {"plugins", "", "classes register themselves (docs/add_a_class.md)"},
    {"sync_batchnorm", "parallel.sync_batchnorm", "in DDP and FSDP"},
    {"reload_dataloaders_every_n_epochs", "",
     "data stays the same; checkpoint.data_may_change lets a resumed run have other data"},
    {"default_root_dir", "exp_dir", ""},
    {"enable_autolog_hparams", "", "config.yaml in exp_dir holds all values"},
    {"model_registry", "", "no registry of models; trainer checkpoint export writes a folder"},
    {"track_grad_norm", "", "grad_norm is logged always"},
    {"replace_sampler_ddp", "task.data.loader.order", "each rank gets its share without a sampler"},
    {"multiple_trainloader_mode", "task.data.mixture",
     "a mixture takes samples of several sources in proportion"},
};

constexpr Word kLightningModuleLightningDataModule[] = {
    {"training_step", "", "the task's compute_loss, or its training_step (docs/add_a_task.md)"},
    {"validation_step", "", "the task's compute_loss and metrics (docs/add_a_task.md)"},
    {"predict_step", "", "the task's predict, by trainer predict"},
    {"configure_optimizers", "optimizer.name, lr_scheduler.name",
     "learning rates by part in optimizer.groups; several optimizers: optimizers"},
    {"automatic_optimization", "", "a task with a training_step of its own (docs/add_a_task.md)"},
    {"LightningDataModule", "task.name", "a task brings its data: task.data (docs/data.md)"},
};

constexpr Word kModelCheckpointEarlyStopping[] = {
    {"ModelCheckpoint", "checkpoint.save_every_n_steps, checkpoint.keep_best.metric", ""},
    {"EarlyStopping", "early_stopping.metric", ""},
    {"dirpath", "exp_dir", "checkpoints lie in exp_dir/checkpoints"},
    {"every_n_train_steps", "checkpoint.save_every_n_steps", ""},
    {"train_time_interval", "checkpoint.save_every_n_seconds", ""},
    {"every_n_epochs", "checkpoint.save_every_n_steps",
     "counted in steps, or in seconds by checkpoint.save_every_n_seconds"},
    {"save_top_k", "checkpoint.keep_best.k", ""},
    {"save_last", "checkpoint.keep_last", "the last step is always saved"},
    {"save_weights_only", "", "a checkpoint is whole; trainer checkpoint export takes the weights"},
    {"monitor", "checkpoint.keep_best.metric, early_stopping.metric", ""},
    {"save_on_train_epoch_end", "checkpoint.save_every_n_steps", "counted in steps"},
    {"auto_insert_metric_name", "", "checkpoints are named by their step"},
    {"enable_version_counter", "", "runs are counted: runs/EXP_NAME/run_N"},
    {"min_delta", "early_stopping.min_delta", ""},
    {"patience", "early_stopping.patience", "validations"},
    {"check_finite", "early_stopping.check_finite", ""},
    {"stopping_threshold", "early_stopping.threshold", ""},
    {"divergence_threshold", "training.stop_on_nonfinite_loss",
     "spikes of the loss: guards.on_spike"},
    {"ckpt_path", "checkpoint.resume",
     "exp_dir=FOLDER goes on; checkpoint.load_from begins with other weights"},
    {"seed_everything", "training.seed", ""},
};

constexpr Chapter kChapters[] = {
    {"Trainer", kTrainer},
    {"LightningModule, LightningDataModule", kLightningModuleLightningDataModule},
    {"ModelCheckpoint, EarlyStopping", kModelCheckpointEarlyStopping},
};

}  // namespace

constinit const Peer kLightning{"Lightning", "Lightning", kChapters};

}  // namespace phalanx::words
