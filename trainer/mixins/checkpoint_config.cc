// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/checkpoint_config.h"

#include "trainer/config/tree/schema.h"

namespace phalanx {

Retention CheckpointConfig::retention() const {
  return {.keep_last = only_save_most_recent ? 1 : keep_last,
          .keep_every_n_steps = keep_every_n_steps,
          .keep_best = keep_best};
}

void CheckpointConfig::describe(config::Schema<CheckpointConfig>& s) {
  s.field("save_every_n_steps", &CheckpointConfig::save_every_n_steps,
          "save after every n steps; null: not by steps")
      .count()
      .unit("steps")
      .at_least(1)
      .resume_may_change();
  s.field("save_every_n_seconds", &CheckpointConfig::save_every_n_seconds,
          "save after the step that ends so long, or longer, after the last save; null: not by "
          "time")
      .resume_may_change();
  s.field("keep_last", &CheckpointConfig::keep_last,
          "how many of the newest checkpoints stay; null: all")
      .unit("checkpoints")
      .at_least(1)
      .resume_may_change();
  s.field("only_save_most_recent", &CheckpointConfig::only_save_most_recent,
          "keep the newest checkpoint alone: the same as keep_last: 1")
      .resume_may_change();
  s.field("keep_every_n_steps", &CheckpointConfig::keep_every_n_steps,
          "checkpoints of every n-th step stay as well; null: none for that")
      .count()
      .unit("steps")
      .at_least(1)
      .resume_may_change();
  s.field("keep_best", &CheckpointConfig::keep_best,
          "the best by a metric of validation stay as well, and each validation is followed by a "
          "save; null: none for that")
      .resume_may_change();
  s.field("async", &CheckpointConfig::async,
          "save while training goes on: what a rank writes is copied into host memory first, which "
          "takes as much again")
      .resume_may_change();
  s.field("while_saving", &CheckpointConfig::while_saving,
          "when a checkpoint is due while the one before is still being written; wait: for it; "
          "skip: this one, with a warning")
      .choices({{"wait", WhileSaving::wait}, {"skip", WhileSaving::skip}})
      .resume_may_change();
  s.field("sha256", &CheckpointConfig::sha256,
          "also write SHA256SUMS, which sha256sum -c checks: each file is read once more for it")
      .resume_may_change();
  s.field("on_error", &CheckpointConfig::on_error,
          "when a checkpoint cannot be saved; stop: end the run; warn: say so and go on, to try "
          "again at the next one")
      .choices({{"stop", OnSaveError::stop}, {"warn", OnSaveError::warn}})
      .resume_may_change();
  s.field(
       "resume", &CheckpointConfig::resume,
       "auto: go on from the newest good checkpoint in exp_dir, and refuse a run whose checkpoints "
       "are gone; if_any: the same, and begin such a run anew; never: refuse a folder with one")
      .choices({{"auto", Resume::automatic}, {"if_any", Resume::if_any}, {"never", Resume::never}})
      .resume_may_change();
  s.field(
       "data_may_change", &CheckpointConfig::data_may_change,
       "go on with other training data than that of the checkpoint, under its optimizer, step and "
       "random numbers: the epoch that was begun is given up, and the next one begins with the "
       "new data; task.data may change then")
      .resume_may_change();
  s.field("load_from", &CheckpointConfig::load_from,
          "what a run without checkpoints begins with: a checkpoint, a run's folder, or a file or "
          "folder of safetensors as Hugging Face's libraries write them")
      .resume_may_change();
  s.field("load_model_only", &CheckpointConfig::load_model_only,
          "true: only the weights, in whatever precision they are there; false: optimizer, step, "
          "random numbers and place in the data as well")
      .resume_may_change();
  s.field("load_strict", &CheckpointConfig::load_strict,
          "true: tensors that are missing there, or unknown here, are an error; false: a warning")
      .resume_may_change();
  s.field("load_prefixes", &CheckpointConfig::load_prefixes,
          "what names there begin with, and what they begin with here: {transformer.: ''}")
      .resume_may_change();
  s.field(
       "load_vocabulary", &CheckpointConfig::load_vocabulary,
       "where the vocabulary differs from that of load_from; by_token: a row of an embedding or a "
       "head takes that of the same token, by both tokenizers; by_id: that of the same number; "
       "others stay as they are initialised")
      .choices({{"by_token", LoadVocabulary::by_token}, {"by_id", LoadVocabulary::by_id}})
      .null_is("refuse")
      .resume_may_change();
  s.ineffective({"load_model_only", "load_strict", "load_prefixes", "load_vocabulary"},
                "load_from is null",
                [](const CheckpointConfig& config) { return !config.load_from; });
  s.ineffective({"load_strict", "load_vocabulary"},
                "load_model_only is false: everything must be there",
                [](const CheckpointConfig& config) { return !config.load_model_only; });
  s.ineffective({"while_saving"}, "async is false",
                [](const CheckpointConfig& config) { return !config.async; });
  s.ineffective({"keep_last"}, "only_save_most_recent is true",
                [](const CheckpointConfig& config) { return config.only_save_most_recent; });
  s.ineffective({"keep_every_n_steps"}, "keep_last is null: all stay",
                [](const CheckpointConfig& config) {
                  return !config.keep_last && !config.only_save_most_recent;
                });
}

CheckpointConfig checkpoint_config(const config::Node& resolved) {
  return config::read<CheckpointConfig>(*resolved.find("checkpoint"));
}

}  // namespace phalanx
