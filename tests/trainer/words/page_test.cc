// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/joined.h"
#include "trainer/words/words.h"

/// docs/coming_from.md shows the words of the program.
namespace phalanx::words {
namespace {

/// `a`, `b` for "a, b"; a dash for nothing.
std::string fields_of(std::string_view here) {
  std::vector<std::string> fields;
  while (!here.empty()) {
    const std::size_t end = std::min(here.find(", "), here.size());
    fields.push_back("`" + std::string(here.substr(0, end)) + "`");
    here.remove_prefix(std::min(end + 2, here.size()));
  }
  return fields.empty() ? "-" : joined(fields);
}

/// The tables as Markdown.
std::string tables() {
  std::string text;
  for (const Peer* peer : peers()) {
    text += "## " + std::string(peer->title) + "\n\n";
    for (const Chapter& chapter : peer->chapters) {
      text += "### " + std::string(chapter.title) +
              "\n\n| there | here | how it differs, or why it is missing |\n|---|---|---|\n";
      for (const Word& word : chapter.words) {
        text += "| `" + std::string(word.there) + "` | " + fields_of(word.here) + " | " +
                std::string(word.note) + " |\n";
      }
      text += "\n";
    }
  }
  text.pop_back();
  return text;
}

TEST(PageOfWords, EndsWithTheTables) {
  std::ifstream file("docs/coming_from.md");
  std::stringstream page;
  page << file.rdbuf();
  ASSERT_GT(page.str().size(), 1000U);
  std::istringstream made(tables());
  std::istringstream kept(
      page.str().substr(std::min(page.str().find("\n## Plain PyTorch with DistributedDataParallel"),
                                 page.str().size() - 1) +
                        1));
  std::string wanted;
  std::string found;
  while (std::getline(made, wanted)) {
    std::getline(kept, found);
    ASSERT_EQ(found, wanted) << "the tables of docs/coming_from.md are to be:\n" << tables();
  }
  EXPECT_FALSE(std::getline(kept, found)) << found;
}

}  // namespace
}  // namespace phalanx::words
