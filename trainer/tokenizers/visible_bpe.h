// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/tokenizers/added_tokens.h"
#include "trainer/tokenizers/merges.h"
#include "trainer/tokenizers/vocabulary.h"

namespace phalanx {

/// The merges of a file, in their order: the texts of the two tokens.
using MergeList = std::vector<std::pair<std::string, std::string>>;

/// "Ġ t" as a pair. Throws std::invalid_argument where it is none.
std::pair<std::string, std::string> split_merge(std::string_view line);

/// A byte-level BPE, whose files write bytes as characters that can be seen (byte_alphabet.h).
struct VisibleBpe {
  Vocabulary vocabulary;  ///< In bytes.
  Merges merges;
};

/// Reads the entries of a vocabulary and its merges, as the file has them. Added tokens that no
/// merge needs are left out of the vocabulary: they are texts, not bytes. Throws
/// std::invalid_argument for a merge of or into what is no token, and UnsupportedPart for a text
/// that is not of the alphabet.
VisibleBpe read_visible_bpe(std::vector<Vocabulary::Entry> entries,
                            const std::vector<AddedToken>& added, const MergeList& merges);

}  // namespace phalanx
