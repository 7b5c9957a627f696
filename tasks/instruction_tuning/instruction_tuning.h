// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/interfaces/causal_language_model.h"
#include "models/interfaces/token_loss.h"
#include "tasks/instruction_tuning/prompts.h"
#include "trainer/api/attachments.h"
#include "trainer/api/task.h"
#include "trainer/config/tree/forward.h"
#include "trainer/data/dataset.h"
#include "trainer/data/loader.h"
#include "trainer/data/pairs/text_pairs.h"
#include "trainer/data/task_tokenizer.h"
#include "trainer/data/token_batch.h"
#include "trainer/generation/generate_texts.h"
#include "trainer/generation/generation_config.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Prompts and their answers.
struct InstructionDataConfig {
  PairsConfig pairs;
  std::filesystem::path tokenizer;
  std::optional<int64_t> end_of_text;
  int64_t sequence_length = 1024;
  LoaderConfig loader;

  static void describe(config::Schema<InstructionDataConfig>& s);
};

/// Learns to answer prompts: the loss is that of the answer's tokens and of the end of text behind
/// it, not that of the prompt's.
class InstructionTuning : public Task<TokenBatch, CausalLanguageModel> {
 public:
  struct Config {
    InstructionDataConfig data;
    TokenLossConfig loss;
    GenerationConfig generation;

    static void describe(config::Schema<Config>& s);
  };

  /// Throws UserError for a tokenizer that cannot be read.
  explicit InstructionTuning(Config config);

  /// See Task.
  static std::vector<std::string_view> metric_names() {
    return {"loss", "perplexity", "exact_match", "rouge1", "rouge2", "rougeL", "rougeLsum"};
  }

  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override;
  bool takes_files() const override { return true; }

  /// The mean cross-entropy in nats a learned token.
  Loss compute_loss(CausalLanguageModel& model, const TokenBatch& batch,
                    const State& state) override;

  /// The model must take a whole sequence, and know every token.
  void check(const CausalLanguageModel& model) const override;
  void adapt_to(const CausalLanguageModel& model) override;

  /// perplexity, a learned token.
  NamedValues metrics(const NamedValues& mean_losses) const override;

  /// Prompts to answer.
  std::unique_ptr<PredictionSource> prediction_data(const PredictionInput& input) override;
  /// The model's answers, by task.generation.
  Predictions predict(CausalLanguageModel& model, const TokenBatch& batch,
                      const State& state) override;

  /// exact_match, rouge1, rouge2, rougeL and rougeLsum of the model's answers.
  std::vector<NamedValues> score_texts(CausalLanguageModel& model, const TokenBatch& batch,
                                       const State& state) override;

  TaskText text() const override { return tokenizer_.text(config_.data.pairs.special_tokens); }

  /// The tokenizer's files; none where tokens are bytes.
  Attachments attachments() const override { return tokenizer_.files; }
  std::string held_back() const override { return held_back_; }

 private:
  std::shared_ptr<const Dataset> known(std::shared_ptr<const Dataset> samples) const;
  std::vector<GeneratedText> answers(CausalLanguageModel& model,
                                     const std::vector<PromptAndAnswer>& samples) const;

  Config config_;
  TaskTokenizer tokenizer_;
  Ranks ranks_;  // Those that write answers together.
  // The model's, which `adapt_to` takes before the data is built.
  std::optional<int64_t> vocabulary_size_;
  std::string held_back_;
};

}  // namespace phalanx
