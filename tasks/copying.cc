// SPDX-License-Identifier: Apache-2.0
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/interfaces/causal_language_model.h"
#include "trainer/api/task.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/dataset.h"
#include "trainer/data/loader.h"
#include "trainer/data/token_batch.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

struct CopyingConfig {
  int64_t symbols = 16;
  int64_t length = 16;
  int64_t training_samples = 4096;
  int64_t validation_samples = 256;
  LoaderConfig loader;

  static void describe(config::Schema<CopyingConfig>& s) {
    s.field("symbols", &CopyingConfig::symbols, "number of different tokens").in_range(2, 1 << 24);
    s.field("length", &CopyingConfig::length, "of the sequence that is to be repeated")
        .in_range(1, 1 << 20)
        .unit("tokens");
    s.field("training_samples", &CopyingConfig::training_samples, "an epoch").count().at_least(1);
    s.field("validation_samples", &CopyingConfig::validation_samples, "0: no validation")
        .count()
        .at_least(0);
    s.field("loader", &CopyingConfig::loader, "how samples are read");
  }
};

/// Random sequences, each followed by itself. Sample i depends on (i, config) alone.
class RepeatedSequences : public Dataset {
 public:
  RepeatedSequences(const CopyingConfig& config, int64_t first, int64_t count)
      : config_(config), first_(first), count_(count) {}

  int64_t size() const override { return count_; }

  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override {
    std::vector<at::Tensor> rows;
    for (const int64_t index : indices) {
      auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(first_ + index));
      const at::Tensor once = at::randint(0, config_.symbols, {config_.length}, generator,
                                          at::TensorOptions(at::kLong));
      rows.push_back(at::cat({once, once}));
    }
    const at::Tensor sequences = at::stack(rows);
    auto batch = std::make_unique<TokenBatch>();
    batch->inputs = sequences.slice(1, 0, -1);
    batch->targets = sequences.slice(1, 1).clone();
    // The first half cannot be foreseen: only its repetition counts.
    batch->targets.slice(1, 0, config_.length - 1).fill_(kIgnored);
    batch->samples = sequences.size(0);
    batch->tokens = batch->samples * config_.length;
    return batch;
  }

  std::string fingerprint() const override {
    return fmt::format("copying {} {} {} {}", config_.symbols, config_.length, first_, count_);
  }

  static constexpr int64_t kIgnored = -100;  // cross_entropy's default ignore_index

 private:
  CopyingConfig config_;
  int64_t first_;
  int64_t count_;
};

/// Learns to repeat a sequence: the smallest task that a model without a memory cannot do
/// (Hochreiter and Schmidhuber 1997; Graves et al. 2014, section 4.1). It needs no data.
class Copying : public Task<TokenBatch, CausalLanguageModel> {
 public:
  using Config = CopyingConfig;

  explicit Copying(Config config) : config_(config) {}

  static std::vector<std::string_view> metric_names() { return {"loss"}; }

  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override {
    const bool training = phase == Phase::train;
    const int64_t count = training ? config_.training_samples : config_.validation_samples;
    if (count == 0) return nullptr;
    const int64_t first = training ? 0 : config_.training_samples;
    return load(std::make_shared<RepeatedSequences>(config_, first, count), config_.loader, request,
                training);
  }

  Loss compute_loss(CausalLanguageModel& model, const TokenBatch& batch, const State&) override {
    const at::Tensor logits = model.logits(batch.inputs);
    return at::cross_entropy_loss(logits.flatten(0, 1), batch.targets.flatten());
  }

  void check(const CausalLanguageModel& model) const override {
    const int64_t context = 2 * config_.length - 1;
    if (model.vocabulary_size() >= config_.symbols && model.context_length() >= context) return;
    throw UserError(fmt::format(
        "the task copying needs a model of {} tokens (task.symbols) with a context of {} "
        "(2 * task.length - 1); this one has {} and {}",
        config_.symbols, context, model.vocabulary_size(), model.context_length()));
  }

 private:
  Config config_;
};

REGISTER_TASK("copying", Copying);

}  // namespace
}  // namespace phalanx
