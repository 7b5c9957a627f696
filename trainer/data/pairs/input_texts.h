// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/pairs/input_lines.h"
#include "trainer/data/pairs/text_pairs.h"
#include "trainer/data/pairs/text_template.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// Inputs of pairs without their targets, to make predictions of: a line of a text file each, or a
/// line of JSONL by the template of the pairs' inputs.
class InputTexts {
 public:
  /// Without `pairs` a line's field `text` is the input. Throws UserError for a file that cannot be
  /// read.
  InputTexts(const std::vector<std::filesystem::path>& files,
             std::shared_ptr<const Tokenizer> tokenizer, std::optional<PairsConfig> pairs);

  int64_t size() const { return lines_.size(); }

  /// The tokens of an input. One of more than `most` is cut, or refused, as the pairs' `too_long`
  /// says; `field` is what sets the limit. Throws BrokenSampleError.
  std::vector<int32_t> tokens(int64_t index, int64_t most, std::string_view field) const;

  /// See InputLines::fail.
  [[noreturn]] void fail(int64_t index, const std::string& kind, const std::string& problem) const {
    lines_.fail(index, kind, problem);
  }

  std::string fingerprint() const { return lines_.fingerprint(); }

 private:
  std::string text(int64_t index) const;

  InputLines lines_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<PairsConfig> pairs_;
  TextTemplate template_;
};

}  // namespace phalanx
