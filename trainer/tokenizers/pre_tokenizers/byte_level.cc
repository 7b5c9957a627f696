// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "trainer/tokenizers/byte_alphabet.h"
#include "trainer/tokenizers/gpt2_pattern.h"
#include "trainer/tokenizers/pre_tokenizers/cut_by_matches.h"
#include "trainer/tokenizers/pre_tokenizers/kinds.h"
#include "trainer/tokenizers/split_pattern.h"

namespace phalanx::pre_tokenizers {
namespace {

using nlohmann::json;

// A piece with its bytes as characters that can be seen, as the model knows them.
void take_visible(const TextPiece& piece, PreTokenizer::Take take) {
  std::string visible;
  append_visible_bytes(piece.text.substr(0, piece.at_start), visible);
  const size_t at_start = visible.size();
  append_visible_bytes(piece.text.substr(piece.at_start), visible);
  take({.text = visible, .at_start = at_start});
}

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool adds_space, bool cuts) : adds_space_(adds_space) {
    if (cuts) words_.emplace(std::string(kGpt2Pattern));
  }

  void cut(const TextPiece& piece, Take take) const override {
    if (!adds_space_ || piece.text.starts_with(' ')) {
      cut_words(piece, take);
      return;
    }
    std::string spaced(1, ' ');
    spaced += piece.text;
    cut_words({.text = spaced, .at_start = piece.at_start == 0 ? 0 : piece.at_start + 1}, take);
  }

  // With a space before each piece, a part that begins with a line end would get one.
  bool cuts_behind_letters() const override { return words_ && !adds_space_; }

 private:
  void cut_words(const TextPiece& piece, Take take) const {
    if (!words_) {
      take_visible(piece, take);
      return;
    }
    cut_by_matches(
        piece, {}, [&](const TextPiece& word) { take_visible(word, take); },
        [&](const auto& found) {
          SplitPattern::Matches matches(*words_, piece.text);
          size_t begin = 0;
          size_t end = 0;
          while (matches.next(begin, end)) found(begin, end);
        });
  }

  bool adds_space_;
  std::optional<SplitPattern> words_;
};

}  // namespace

Made read_byte_level(const json& object) {
  return std::make_shared<ByteLevel>(object.at("add_prefix_space").get<bool>(),
                                     object.value("use_regex", true));
}

}  // namespace phalanx::pre_tokenizers
