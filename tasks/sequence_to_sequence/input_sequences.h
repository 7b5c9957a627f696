// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/pairs/input_lines.h"
#include "trainer/data/pairs/text_pairs.h"
#include "trainer/data/pairs/text_template.h"
#include "trainer/data/task_tokenizer.h"

namespace phalanx {

/// Texts to write another for: a line of a text file each, or a line of JSONL by the template of
/// the task's inputs. Makes SequencePairBatch without targets.
class InputSequences : public Dataset {
 public:
  struct Options {
    std::optional<PairsConfig> pairs;  ///< None: a line's field `text` is the input.
    int64_t input_length = 0;          ///< In tokens, the end-of-text token included.
  };

  /// Throws UserError for a file that cannot be read.
  InputSequences(const std::vector<std::filesystem::path>& files, TaskTokenizer tokenizer,
                 Options options);

  int64_t size() const override { return lines_.size(); }
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override;
  std::string fingerprint() const override { return lines_.fingerprint(); }

 private:
  std::string text_of(int64_t index) const;
  std::vector<int64_t> tokens_of(int64_t index) const;

  const InputLines lines_;
  const TaskTokenizer tokenizer_;
  const Options options_;
  const TextTemplate template_;
};

}  // namespace phalanx
