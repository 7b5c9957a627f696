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
#include "tasks/language_modeling/token_data.h"
#include "trainer/api/attachments.h"
#include "trainer/api/task.h"
#include "trainer/config/tree/forward.h"
#include "trainer/data/token_batch.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// The text that the model writes at the end of training.
struct TextSampleConfig {
  /// What a tokenizer may have no tokens for.
  static constexpr const char* kDefaultPrompt = "\n";

  std::string prompt = kDefaultPrompt;
  int64_t tokens = 200;
  double temperature = 0.8;
  int64_t seed = 0;

  static void describe(config::Schema<TextSampleConfig>& s);
};

/// Learns to predict each next token from those before it.
class LanguageModeling : public Task<TokenBatch, CausalLanguageModel> {
 public:
  struct Config {
    TextDataConfig data;
    TokenLossConfig loss;
    std::optional<TextSampleConfig> sample = TextSampleConfig();

    static void describe(config::Schema<Config>& s);
  };

  /// Throws UserError for a tokenizer that cannot be read.
  explicit LanguageModeling(Config config);

  /// See Task.
  static std::vector<std::string_view> metric_names() {
    return {"loss", "perplexity", "bits_per_byte"};
  }

  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override;
  bool takes_files() const override { return true; }

  /// The mean cross-entropy in nats a token, in the model's dtype.
  Loss compute_loss(CausalLanguageModel& model, const TokenBatch& batch,
                    const State& state) override;

  /// The model must take a whole sequence, and know every token of the tokenizer.
  void check(const CausalLanguageModel& model) const override;
  void adapt_to(const CausalLanguageModel& model) override;

  /// perplexity (a token); bits_per_byte where a tokenizer is known (bytes_per_token).
  NamedValues metrics(const NamedValues& mean_losses) const override;

  /// Text drawn from the model; none without a tokenizer. Throws NoSample where the tokenizer has
  /// no tokens for the default prompt. Leaves the model in its mode, and the
  /// default generators alone.
  std::string show_sample(CausalLanguageModel& model, const State& state) override;

  /// Documents, a line each: their log-probability and perplexity. Throws UserError without a
  /// tokenizer.
  std::unique_ptr<PredictionSource> prediction_data(const PredictionInput& input) override;
  Predictions predict(CausalLanguageModel& model, const TokenBatch& batch,
                      const State& state) override;

  TaskText text() const override;

  /// The tokenizer's files; none where tokens are bytes.
  Attachments attachments() const override { return attachments_; }
  std::string held_back() const override { return held_back_; }

 private:
  void take(LoadedTokenizer tokenizer);

  Config config_;
  std::shared_ptr<const Tokenizer> tokenizer_;  // That of bytes where tokens are bytes; or none.
  std::string tokenizer_field_;                 // Which field names it.
  std::filesystem::path tokenizer_name_;
  Attachments attachments_;
  double bytes_per_token_ = 0;  // In the validation data; 0: not known.
  // The model's, which `adapt_to` takes before the data is built. No token may be beyond it.
  std::optional<int64_t> vocabulary_size_;
  int64_t context_length_ = 0;
  std::string held_back_;
};

}  // namespace phalanx
