// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/trainer/config/example.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/print.h"

namespace phalanx::config {
namespace {

const std::vector<std::string> kSeeds = {
    "title: a\nlevel: info\nloader:\n  workers: 1\n  shuffle: false\noptimizer:\n  name: adamw\n"
    "  lr: 1e-4\n  betas: [0.9, 0.99]\n  file: ${title}/x\n  groups:\n    - workers: 1\n    - {}\n",
    "{title: 'a ${level}', loader: {workers: ${optimizer.warmup_steps}},"
    " optimizer: {name: adamw, warmup_steps: 3, file: \"x\\ty\"}}\n",
    "# comment\noptimizer: sgd\ntitle: |\n  a\n  b\nlevel: >-\n  info\n",
    "? level\n: info\noptimizer: !!map {name: &a sgd, lr: *a, <<: {}}\n---\n...\n"};

const std::vector<std::string> kOverrides = {"optimizer.lr=0.1",
                                             "optimizer={name: sgd}",
                                             "optimizer.betas=[${title}, 'x']",
                                             "title=\"a\\n\"",
                                             "~optimizer.lr",
                                             "+level=info",
                                             "++loader.workers=2",
                                             "optimizer.betas[1]=0.5",
                                             "title=a\\,b\\ ",
                                             "title='it\\'s'",
                                             "loader={workers:1,shuffle: true}"};

const std::vector<std::string> kPieces = {
    "\n",  "  ",    "\t",  ":",   ": ",       "- ",  "[",    "]",    "{",    "}", ",",    "#",
    "&a ", "*a ",   "!",   "|",   ">",        "'",   "\"",   "\\",   "%",    "@", "`",    "?",
    "? ",  "---\n", "...", "${",  "${title}", "~",   "<<: ", "\xFF", "\xC3", "é", "\x00", "\x04",
    "\r",  "0",     "-1",  "1e9", "null",     "???", "\\u",  "\\x",  "=",    "."};

/// Texts that are almost right.
class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string mutate(std::string text) {
    const std::size_t edits = 1 + below(2);
    for (std::size_t i = 0; i < edits; ++i) edit(text);
    return text;
  }
  std::size_t below(std::size_t bound) { return random_() % bound; }

 private:
  void edit(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    switch (below(4)) {
      case 0:
        text.insert(at, kPieces[below(kPieces.size())]);
        break;
      case 1:
        text.erase(at, 1 + below(8));
        break;
      case 2:
        text.insert(at, text.substr(below(text.size() + 1), below(40)));
        break;
      default:
        if (at < text.size())
          text[at] = static_cast<char>(below(4) == 0 ? below(256) : ' ' + below(90));
    }
  }

  std::mt19937 random_;
};

TEST(MutatedInput, IsReadOrRefusedButNeverFailsOtherwise) {
  int accepted = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    Mutator mutator(seed);
    const std::string yaml = mutator.mutate(kSeeds[mutator.below(kSeeds.size())]);
    std::vector<std::string> overrides;
    if (mutator.below(2) == 0) {
      overrides.push_back(mutator.mutate(kOverrides[mutator.below(kOverrides.size())]));
    }
    try {
      const Node resolved = resolve_example(yaml, overrides);
      ++accepted;
      ASSERT_TRUE(same_value(resolve_example(print(resolved)), resolved)) << yaml;
    } catch (const UserError& error) {
      ASSERT_FALSE(std::string(error.what()).empty());
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace phalanx::config
