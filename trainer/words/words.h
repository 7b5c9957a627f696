// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trainer/words/word.h"

namespace phalanx::words {

/// The trainers whose words are known, in the order of docs/coming_from.md.
std::span<const Peer* const> peers();

/// What a key that is unknown here is called here: "per_device_train_batch_size (transformers) is
/// here: training.batch_size (samples a rank and micro-batch)", or why there is no such field; of
/// each trainer that has the word, those that agree together. `path` is where the key was written,
/// as a dotted path: a word that is a path itself fits its end, and goes before a name alone.
/// Empty for a word of nobody, and for a single word in the section of
/// a model or a task, which has words of its own.
std::string explain(std::string_view path);

}  // namespace phalanx::words
