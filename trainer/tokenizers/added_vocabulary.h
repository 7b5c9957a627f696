// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/tokenizers/models/byte_trie.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// A token that is found in a text before a model sees it, with the options of the package
/// tokenizers.
struct AddedEntry {
  int32_t token = 0;
  std::string text;          ///< Not empty.
  std::string pattern;       ///< What is looked for: the text, or what the normalizer makes of it.
  bool is_special = false;   ///< Found only with SpecialText::token.
  bool single_word = false;  ///< Found only where no letter or digit stands beside it.
  bool strips_left = false;  ///< Takes the white space before it.
  bool strips_right = false;
  bool normalized = false;  ///< Looked for in the normalized text.
};

/// Finds added tokens. Thread-safe.
class AddedVocabulary {
 public:
  /// The patterns must not be empty, nor any two of them the same.
  explicit AddedVocabulary(std::vector<AddedEntry> entries);

  using Take = c10::function_ref<void(std::size_t begin, std::size_t end, const AddedEntry* added)>;

  /// Calls `take` with what a text is made of: added tokens, and texts between them, not empty. As
  /// in the package, the match that begins first counts, of those the longest; one that does not
  /// count after all (a special one in ordinary text) hides others that overlap it.
  void split(std::string_view text, SpecialText special, Take take) const;

  /// Whether one of the patterns begins, ends or goes on at a place of a text, whether or not it
  /// counts. Where none does, the parts before and behind the place give what the whole gives.
  bool touches(std::string_view text, std::size_t place) const;

  /// Bytes of the longest pattern; 0 without any.
  std::size_t longest() const { return longest_; }

 private:
  const AddedEntry* find(std::string_view text, std::size_t& begin, std::size_t& end) const;

  std::vector<AddedEntry> entries_;
  ByteTrie patterns_;
  std::size_t longest_ = 0;
};

}  // namespace phalanx
