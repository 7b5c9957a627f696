// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/generate_output.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>

#include "trainer/base/utf8.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

// A terminal obeys control characters: those of a model stand as U+FFFD.
std::string safe_on_terminal(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const size_t length = std::max<size_t>(character_length(text), 1);
    const std::string_view character = text.substr(0, length);
    const bool is_shown = character == "\n" || character == "\t" || !is_control(character);
    safe += is_shown ? character : std::string_view("\xEF\xBF\xBD");
    text.remove_prefix(length);
  }
  return safe;
}

bool is_regular_file(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

nlohmann::ordered_json line_of(const Prompt& prompt, const GeneratedText& text) {
  nlohmann::ordered_json line = prompt.line;
  if (prompt.is_text) line["generated"] = text.text;
  if (!prompt.is_text) line["generated_token_ids"] = text.tokens;
  line["generated_tokens"] = text.tokens.size();
  line["finish_reason"] = to_string(text.reason);
  return line;
}

nlohmann::ordered_json line_of_problem(const Prompt& prompt) {
  nlohmann::ordered_json line = prompt.line;
  line["error"] = prompt.problem;
  return line;
}

}  // namespace

GenerateOutput::GenerateOutput(const PromptList& prompts,
                               const std::optional<std::filesystem::path>& file, bool goes_on,
                               int64_t most_tokens)
    : prompts_(prompts),
      file_(file),
      goes_on_(goes_on),
      most_tokens_(most_tokens),
      is_terminal_(isatty(STDOUT_FILENO) == 1),
      console_(STDERR_FILENO) {}

// Where the text itself appears on the screen, lines between its parts would spoil it: a pipe may
// lead there.
bool GenerateOutput::shows_progress() const {
  if (file_) return true;
  if (is_terminal_) return false;
  return !streams() || is_regular_file(STDOUT_FILENO) || isatty(STDERR_FILENO) == 0;
}

int64_t GenerateOutput::begin(const std::string& identity) {
  if (!prompts_.are_json_lines) {
    if (goes_on_) write(prompts_.all.front().text);
  } else if (file_) {
    lines_.emplace(*file_);
    written_ =
        static_cast<size_t>(lines_->begin(identity, /*batch_size=*/1, std::ssize(prompts_.all),
                                          /*see=*/[](const std::string&) {}));
  }
  if (prompts_.are_json_lines) {
    progress_.begin_of("texts", prompts_.all.size(), written_);
  } else {
    progress_.begin_of("tokens", static_cast<uint64_t>(most_tokens_));
  }
  if (shows_progress()) shown_.emplace(console_, "writing", progress_);
  return static_cast<int64_t>(written_);
}

void GenerateOutput::count_token() {
  if (!prompts_.are_json_lines) ++progress_.done;
}

void GenerateOutput::add(std::string_view part) { write(part); }

void GenerateOutput::take(std::span<const GeneratedText> texts) {
  for (const GeneratedText& text : texts) {
    // The next command writes it anew, and those behind it.
    if (lines_ && text.reason == FinishReason::interrupted) return;
    pass_problems();
    const Prompt& prompt = prompts_.all[written_++];
    if (prompts_.are_json_lines) {
      take_line(line_of(prompt, text).dump());
    } else if (!streams()) {
      write(text.text);
    }
  }
  if (prompts_.are_json_lines) progress_.done = written_;
}

void GenerateOutput::pass_problems() {
  while (written_ < prompts_.all.size() && !prompts_.all[written_].problem.empty()) {
    take_line(line_of_problem(prompts_.all[written_++]).dump());
  }
}

void GenerateOutput::take_line(const std::string& line) {
  if (lines_) return lines_->add({line});
  write(line + "\n");
}

void GenerateOutput::finish() {
  pass_problems();
  shown_.reset();
  if (lines_) return lines_->finish();
  if (!ends_with_line_) write("\n");
  if (file_) replace_file(*file_, content_);
}

void GenerateOutput::write(std::string_view text) {
  if (text.empty()) return;
  ends_with_line_ = text.ends_with('\n');
  if (file_) {
    content_ += text;
    return;
  }
  fmt::print("{}", is_terminal_ ? safe_on_terminal(text) : std::string(text));
  std::fflush(stdout);
}

}  // namespace phalanx
