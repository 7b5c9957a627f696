// SPDX-License-Identifier: Apache-2.0
#include "trainer/submission/shell_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/argument.h"

namespace phalanx {
namespace {

constexpr std::string_view kBlanks = " \t\r";

/// Takes words off the front of a line.
class WordReader {
 public:
  explicit WordReader(std::string_view line) : rest_(line) {}

  /// Nothing at the end, and before a comment.
  std::optional<std::string> next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
    if (rest_.empty() || rest_.front() == '#') return std::nullopt;
    word_.clear();
    while (!rest_.empty() && kBlanks.find(rest_.front()) == std::string_view::npos) take_part();
    return word_;
  }

 private:
  char take() {
    const char letter = rest_.front();
    rest_.remove_prefix(1);
    return letter;
  }

  void take_part() {
    const char letter = take();
    if (letter == '\'' || letter == '"') {
      take_quoted(letter);
    } else if (letter == '\\') {
      if (rest_.empty()) throw UserError("nothing follows the backslash at its end");
      word_ += take();
    } else {
      word_ += letter;
    }
  }

  void take_quoted(char quote) {
    constexpr std::string_view kEscaped = "\"\\$`";  // by a backslash in double quotes
    while (!rest_.empty()) {
      const char letter = take();
      if (letter == quote) return;
      const bool escapes = quote == '"' && letter == '\\' && !rest_.empty() &&
                           kEscaped.find(rest_.front()) != std::string_view::npos;
      word_ += escapes ? take() : letter;
    }
    throw UserError(fmt::format("its {} is not closed", quote));
  }

  std::string_view rest_;
  std::string word_;
};

}  // namespace

std::vector<std::string> shell_words(std::string_view line) {
  std::vector<std::string> words;
  WordReader reader(line);
  while (auto word = reader.next()) words.push_back(std::move(*word));
  return words;
}

std::string shell_line(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(config::shell_word(word));
  return fmt::format("{}", fmt::join(quoted, " "));
}

}  // namespace phalanx
