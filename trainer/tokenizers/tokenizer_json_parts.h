// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trainer/tokenizers/added_tokens.h"
#include "trainer/tokenizers/visible_bpe.h"

namespace phalanx {

/// A member of an object, or null.
const nlohmann::json& member(const nlohmann::json& object, const std::string& name);

/// Whether an option is there and says something: true, a number but 0, a text, a list.
bool is_set(const nlohmann::json& object, const std::string& name);

/// What kind of normalizer, decoder, ... an object describes. Throws nlohmann::json::exception.
std::string type_of(const nlohmann::json& object);

/// The one character that a text is. Throws std::invalid_argument.
char32_t character_of(const nlohmann::json& value);

/// The steps that a normalizer, pre-tokenizer or decoder takes, one after the other: those that
/// `list` names of a Sequence, perhaps in Sequences themselves; nothing of null.
std::vector<nlohmann::json> steps_of(const nlohmann::json& value, const std::string& list);

/// Throws UnsupportedPart: `what` is not supported.
[[noreturn]] void refuse_part(const std::string& what);

/// Calls `read`; a mistake in it is of this part of the file (UserError).
void in_part(const char* name, const std::function<void()>& read);

/// The added tokens. Throws std::invalid_argument for one that is none.
std::vector<AddedToken> read_added(const nlohmann::json& list);

/// The merges of a model, which are texts or pairs. Throws std::invalid_argument.
MergeList read_merges(const nlohmann::json& list);

}  // namespace phalanx
