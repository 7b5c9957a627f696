// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/interfaces/sequence_to_sequence_model.h"
#include "models/interfaces/token_loss.h"
#include "tasks/sequence_to_sequence/sequence_data.h"
#include "trainer/api/attachments.h"
#include "trainer/api/task.h"
#include "trainer/config/tree/forward.h"
#include "trainer/data/sequence_pair_batch.h"
#include "trainer/generation/generate_texts.h"
#include "trainer/generation/generation_config.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Learns to write a sequence for one that it reads, with the true tokens before each as its own
/// (teacher forcing): pairs of texts, or T5's span corruption.
class SequenceToSequence : public Task<SequencePairBatch, SequenceToSequenceModel> {
 public:
  struct Config {
    SequenceDataConfig data;
    TokenLossConfig loss;
    GenerationConfig generation;

    static void describe(config::Schema<Config>& s);
  };

  /// Throws UserError for a tokenizer that cannot be read.
  explicit SequenceToSequence(Config config);

  /// See Task.
  static std::vector<std::string_view> metric_names() {
    return {"loss", "perplexity", "exact_match", "rouge1", "rouge2", "rougeL", "rougeLsum"};
  }

  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override;
  bool takes_files() const override { return true; }

  /// The mean cross-entropy in nats a target.
  Loss compute_loss(SequenceToSequenceModel& model, const SequencePairBatch& batch,
                    const State& state) override;

  /// The model must know every token of the tokenizer, the sentinels and end-of-text.
  void check(const SequenceToSequenceModel& model) const override;
  void adapt_to(const SequenceToSequenceModel& model) override;

  /// perplexity, a target.
  NamedValues metrics(const NamedValues& mean_losses) const override;

  /// Texts to write another for. Throws UserError without a tokenizer.
  std::unique_ptr<PredictionSource> prediction_data(const PredictionInput& input) override;
  /// What the model writes, by task.generation.
  Predictions predict(SequenceToSequenceModel& model, const SequencePairBatch& batch,
                      const State& state) override;

  /// exact_match, rouge1, rouge2, rougeL and rougeLsum of what the model writes.
  std::vector<NamedValues> score_texts(SequenceToSequenceModel& model,
                                       const SequencePairBatch& batch, const State& state) override;

  /// With span corruption the sentinels are texts, too: "<extra_id_0>" is the first one. With pairs
  /// they are where special tokens are.
  TaskText text() const override;

  /// The tokenizer's files; none where tokens are bytes.
  Attachments attachments() const override { return tokenizer_.files; }
  std::string held_back() const override { return held_back_; }

 private:
  std::vector<GeneratedText> write_texts(SequenceToSequenceModel& model,
                                         const SequencePairBatch& batch,
                                         const Tokenizer* tokenizer) const;

  Config config_;
  TaskTokenizer tokenizer_;
  std::shared_ptr<const Tokenizer> tokenizer_of_texts_;  // With the sentinels; none: nullptr.
  Ranks ranks_;                                          // Those that write texts together.
  // The model's, which `adapt_to` takes before the data is built. No token may be beyond it.
  std::optional<int64_t> vocabulary_size_;
  std::string held_back_;
};

/// What a decoder reads while it learns: the targets [batch, length] one place later, behind
/// `start`; 0 in place of what is no target.
at::Tensor shifted_right(const at::Tensor& targets, int64_t start);

}  // namespace phalanx
