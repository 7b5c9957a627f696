// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trainer/commands/use/generate_prompts.h"
#include "trainer/commands/use/resumable_file.h"
#include "trainer/generation/generate_texts.h"
#include "trainer/io/count_progress.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/progress_line.h"

namespace phalanx {

/// Where texts go: a file, or standard output.
class GenerateOutput {
 public:
  /// A prompt that is not JSONL stands before its text where `goes_on`: the text goes on from it.
  /// No text has more than `most_tokens`.
  GenerateOutput(const PromptList& prompts, const std::optional<std::filesystem::path>& file,
                 bool goes_on, int64_t most_tokens);

  /// Whether a text is shown as it is written.
  bool streams() const { return !prompts_.are_json_lines && !file_; }

  /// Begins. Returns how many texts an earlier command has written into the file (ResumableFile,
  /// with this `identity`). Throws UserError, IoError.
  int64_t begin(const std::string& identity);
  /// The texts that are being written have one more token each.
  void count_token();
  /// A part of the text.
  void add(std::string_view part);
  /// The next texts, in the order of the prompts.
  void take(std::span<const GeneratedText> texts);
  /// After the last one, or where the user ended it. Throws IoError.
  void finish();

 private:
  /// The lines of prompts that nothing is written for, up to the next one.
  void pass_problems();
  void take_line(const std::string& line);
  void write(std::string_view text);
  bool shows_progress() const;

  const PromptList& prompts_;
  std::optional<std::filesystem::path> file_;
  bool goes_on_;
  int64_t most_tokens_;
  bool is_terminal_;
  Console console_;
  CountProgress progress_;
  std::optional<ShownProgress> shown_;
  std::optional<ResumableFile> lines_;  // JSONL in the file.
  std::string content_;                 // The file's content, where that is one text.
  size_t written_ = 0;                  // Texts.
  bool ends_with_line_ = true;
};

}  // namespace phalanx
