// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/words/word.h"

namespace phalanx::words {

/// The trainers whose words are known, in the order of docs/coming_from.md.
std::span<const Peer* const> peers();

/// What is known of a key that is unknown here.
struct Explanation {
  /// "per_device_train_batch_size (transformers) is here: training.batch_size (samples a rank and
  /// micro-batch)", or why there is no such field; of each trainer that has the word, those that
  /// agree together. Empty for a word of nobody.
  std::string text;
  bool is_of_place = false;         ///< The word is a path: the key's section is a part of it.
  std::vector<std::string> fields;  ///< Dotted paths of the fields here.
};

/// Looks up a key where it was written, as a dotted path: a word that is a path itself fits its
/// end, and goes before a name alone. A single word in the section of a model, a task or adapters
/// is taken for one of its own.
Explanation look_up(std::string_view path);

/// The text alone.
std::string explain(std::string_view path);

}  // namespace phalanx::words
