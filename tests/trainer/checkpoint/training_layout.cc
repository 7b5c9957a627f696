// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/checkpoint/training_layout.h"

#include <utility>

#include "models/gpt2/config.h"
#include "tests/models/gpt2/registered_gpt2.h"
#include "tests/tensors.h"
#include "tests/trainer/registered.h"
#include "trainer/api/parameters.h"
#include "trainer/parallel/ddp/ddp.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

/// Divided by 1, 2, 3 and 4 ranks.
constexpr int64_t kRowsPerBatch = 12;
constexpr int64_t kTokensPerRow = 9;

/// Shards end within tensors, at no multiple of a chunk, and are padded.
gpt2::Config odd_sizes() {
  gpt2::Config config;
  config.vocab_size = 1009;
  config.n_positions = 17;
  config.n_embd = 518;
  config.n_layer = 3;
  config.n_head = 7;
  config.embd_pdrop = config.attn_pdrop = config.resid_pdrop = 0;
  return config;
}

/// The rows of a global batch that are this rank's.
at::Tensor batch(int64_t number, const Ranks& ranks, int64_t vocabulary) {
  const int64_t rows = kRowsPerBatch / ranks.world_size();
  const at::Tensor places = tensors::arange(kRowsPerBatch * kTokensPerRow, at::kLong);
  const at::Tensor all = places.mul(7919).add(number * 104'729).square().remainder(vocabulary);
  return all.view({kRowsPerBatch, kTokensPerRow}).narrow(0, ranks.rank() * rows, rows);
}

std::unique_ptr<ParallelEngine> engine_for(torch::nn::Module& module, const TrainingLayout& layout,
                                           const Ranks& ranks) {
  if (ranks.is_single_rank()) return nullptr;
  if (!layout.strategy) return prepare_ddp(module, ranks);
  FsdpOptions options;
  options.shard_group_size = layout.shard_group_size;
  return prepare_fsdp(module, ranks, *layout.strategy, options);
}

}  // namespace

LaidOutTraining::LaidOutTraining(const TrainingLayout& layout, const Ranks& ranks, uint64_t seed)
    : ranks_(ranks) {
  seed_everything(seed);
  model_ = std::make_unique<RegisteredGpt2>(odd_sizes());
  engine_ = engine_for(model_->module(), layout, ranks);
  auto groups = default_parameter_groups(*model_);
  for (auto& group : groups) {
    for (auto& parameter : group.parameters) {
      if (engine_) parameter = engine_->local(parameter);
      locals_.push_back(parameter);
    }
  }
  // Where a gradient is next to nothing, what AdamW makes of it is its rounding: eps damps that.
  optimizer_ = make_registered<Optimizer>("adamw", "{lr: 1.0e-3, eps: 1.0e-5}");
  optimizer_->bind(std::move(groups));
}

LaidOutTraining::~LaidOutTraining() = default;

at::Tensor LaidOutTraining::loss(const at::Tensor& tokens) {
  const auto forward = [&] {
    const at::Tensor logits = model_->logits(tokens.narrow(1, 0, kTokensPerRow - 1));
    const at::Tensor targets = tokens.narrow(1, 1, kTokensPerRow - 1);
    return Loss(tensors::cross_entropy(logits.flatten(0, 1), targets.flatten()));
  };
  return (engine_ ? engine_->run(forward, /*synchronize=*/true) : forward()).total();
}

double LaidOutTraining::step(int64_t number) {
  const at::Tensor mine = loss(batch(number, ranks_, model_->vocabulary_size()));
  mine.backward();
  optimizer_->step(optimizer_->base_lr());
  for (const auto& local : locals_) local.tensor.mutable_grad().reset();
  const at::Tensor mean = mine.detach().to(at::kDouble);
  ranks_.all_reduce(mean, Reduction::average);
  return mean.item<double>();
}

std::vector<ShardedTensorView> LaidOutTraining::model() const {
  std::vector<ShardedTensorView> views;
  for (const auto& parameter : named_parameters(*model_)) {
    views.push_back(view_of(engine_ ? engine_->local(parameter) : parameter));
  }
  return views;
}

std::vector<ShardedTensorView> LaidOutTraining::optimizer() const { return optimizer_->state(); }

std::vector<ShardedTensorView> LaidOutTraining::views() const {
  std::vector<ShardedTensorView> views = model();
  for (auto& view : optimizer()) views.push_back(std::move(view));
  return views;
}

}  // namespace phalanx
