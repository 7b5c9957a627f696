// SPDX-License-Identifier: Apache-2.0
#include "trainer/submission/shell_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/argument.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Words = std::vector<std::string>;

// The words that bash makes of a line, a newline after each; one newline if there are none.
std::string told_by_bash(const std::string& line) {
  const std::string command =
      "bash -fc " + config::shell_word("set -- " + line + "\nprintf '%s\\n' \"$@\"");
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::string text;
  std::array<char, 4096> buffer;
  while (const size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    text.append(buffer.data(), size);
  }
  return text;
}

std::string random_text(std::mt19937& random, const std::string& letters) {
  std::string text;
  for (unsigned length = random() % 12; length > 0; --length) {
    text += letters[random() % letters.size()];
  }
  return text;
}

TEST(ShellWords, KeepWhatIsQuotedAndExpandNothing) {
  EXPECT_THAT(shell_words("a.yaml  lr=1e-3\t'it is' \"b\\\"c\"d x\\ y\r"),
              ElementsAre("a.yaml", "lr=1e-3", "it is", "b\"cd", "x y"));
  EXPECT_THAT(shell_words("$HOME * '$(date)' ~ \"\\n\" ''"),
              ElementsAre("$HOME", "*", "$(date)", "~", "\\n", ""));
  EXPECT_THAT(shell_words("a#b # 'c"), ElementsAre("a#b"));
  EXPECT_THAT(shell_words("# a"), IsEmpty());
  EXPECT_THAT(shell_words(" \r"), IsEmpty());
}

TEST(ShellWords, RefuseWhatDoesNotEnd) {
  for (const char* line : {"a 'b", "a \"b'", "a\\", "\"a\\\""}) {
    EXPECT_THROW(shell_words(line), UserError) << line;
  }
}

TEST(ShellWords, ReadWhatIsQuoted) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const Words words{random_text(random, "ab '\"$`\\(){}[]*?~!#&|;<>=\t"), "next"};
    EXPECT_EQ(shell_words(config::shell_word(words[0]) + " next"), words);
  }
}

TEST(ShellWords, AreThoseOfTheLineThatIsMadeOfThem) {
  const Words words{"printf", "%s", "a b", "", "it's", "$HOME", "$(date)"};
  EXPECT_EQ(shell_words(shell_line(words)), words);
}

TEST(ShellWords, AreThoseOfBash) {
  std::mt19937 random(5);
  int compared = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string line = random_text(random, "ab  '\"\\=#");
    std::string words;
    try {
      for (const std::string& word : shell_words(line)) words += word + "\n";
    } catch (const UserError&) {
      continue;
    }
    EXPECT_EQ(told_by_bash(line), words.empty() ? "\n" : words) << line;
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace phalanx
