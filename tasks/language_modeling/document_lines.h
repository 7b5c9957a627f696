// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/pairs/input_lines.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// Documents to give the log-probabilities of: a line of a text file each, or the field `text` of a
/// line of JSONL. Makes TokenBatch, as wide as its longest document.
class DocumentLines : public Dataset {
 public:
  struct Options {
    std::string field = "text";
    int64_t context_length = 0;  ///< The longest document that the model takes, less one token.
    AnyBytes any_bytes = {};     ///< Whether a line may be of any bytes.
  };

  /// Throws UserError for a file that cannot be read.
  DocumentLines(const std::vector<std::filesystem::path>& files,
                std::shared_ptr<const Tokenizer> tokenizer, const Options& options);

  int64_t size() const override { return lines_.size(); }
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override;
  std::string fingerprint() const override { return lines_.fingerprint(); }
  void fail(int64_t index, const std::string& kind, const std::string& problem) const override {
    lines_.fail(index, kind, problem);
  }

 private:
  std::string text_of(int64_t index) const;
  std::vector<int32_t> tokens_of(int64_t index) const;

  const InputLines lines_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const Options options_;
};

}  // namespace phalanx
