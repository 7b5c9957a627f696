// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "trainer/data/dataset.h"
#include "trainer/data/pairs/input_texts.h"

namespace phalanx {

/// Texts to write another for. Makes SequencePairBatch without targets.
class InputSequences : public Dataset {
 public:
  struct Options {
    int64_t input_length = 0;  ///< In tokens, the end-of-text token included.
    int64_t end_of_text = 0;
  };

  InputSequences(InputTexts texts, const Options& options)
      : texts_(std::move(texts)), options_(options) {}

  int64_t size() const override { return texts_.size(); }
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override;
  std::string fingerprint() const override { return texts_.fingerprint(); }
  void fail(int64_t index, const std::string& kind, const std::string& problem) const override {
    texts_.fail(index, kind, problem);
  }

 private:
  const InputTexts texts_;
  const Options options_;
};

}  // namespace phalanx
