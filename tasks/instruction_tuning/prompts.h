// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/pairs/input_texts.h"
#include "trainer/data/token_batch.h"
#include "trainer/generation/generate.h"

namespace phalanx {

/// Prompts to answer. Makes TokenBatch as AnswerSamples does, of answers that are empty: only
/// end-of-text is a target.
class Prompts : public Dataset {
 public:
  struct Options {
    int64_t sequence_length = 0;  ///< The longest prompt, in tokens.
    int64_t end_of_text = 0;
  };

  Prompts(InputTexts texts, const Options& options) : texts_(std::move(texts)), options_(options) {}

  int64_t size() const override { return texts_.size(); }
  /// Also throws BrokenSampleError for a prompt without tokens.
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override;
  std::string fingerprint() const override { return texts_.fingerprint(); }
  void fail(int64_t index, const std::string& kind, const std::string& problem) const override {
    texts_.fail(index, kind, problem);
  }

 private:
  const InputTexts texts_;
  const Options options_;
};

/// A sample of AnswerSamples or Prompts, taken apart.
struct PromptAndAnswer {
  GenerationInput prompt;
  std::vector<int32_t> answer;  ///< Without end-of-text.
};

/// The samples of a batch.
std::vector<PromptAndAnswer> prompts_and_answers(const TokenBatch& batch, int64_t end_of_text);

}  // namespace phalanx
