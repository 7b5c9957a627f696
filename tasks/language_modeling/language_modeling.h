// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "models/interfaces/causal_language_model.h"
#include "trainer/api/task.h"
#include "trainer/config/tree/forward.h"
#include "trainer/data/loader.h"
#include "trainer/data/token_batch.h"

namespace phalanx {

/// Which text, and how it is cut.
struct TextDataConfig {
  std::filesystem::path path;
  std::optional<std::filesystem::path> validation_path;
  double validation_fraction = 0.1;
  int64_t sequence_length = 256;
  LoaderConfig loader;

  static void describe(config::Schema<TextDataConfig>& s);
};

/// The text that the model writes at the end of training.
struct TextSampleConfig {
  std::string prompt = "\n";
  int64_t tokens = 200;
  double temperature = 0.8;
  int64_t seed = 0;

  static void describe(config::Schema<TextSampleConfig>& s);
};

/// Learns to predict each next byte of a text from those before it.
class LanguageModeling : public Task<TokenBatch, CausalLanguageModel> {
 public:
  struct Config {
    TextDataConfig data;
    TextSampleConfig sample;

    static void describe(config::Schema<Config>& s);
  };

  explicit LanguageModeling(Config config) : config_(std::move(config)) {}

  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override;

  /// The mean cross-entropy in nats a token, in the model's dtype.
  Loss compute_loss(CausalLanguageModel& model, const TokenBatch& batch,
                    const State& state) override;

  /// The model must know every byte and take a whole sequence.
  void check(const CausalLanguageModel& model) const override;

  /// perplexity (a token) and bits_per_byte.
  NamedValues metrics(const NamedValues& mean_losses) const override;

  /// Text drawn from the model; sets it to no mode and touches no default generator.
  std::string show_sample(CausalLanguageModel& model, const State& state) override;

 private:
  Config config_;
};

}  // namespace phalanx
