// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// The tokenizer that a tokenizer.json describes (the package tokenizers writes them): BPE of
/// bytes or characters, by its decoder. A normalizer, pre-tokenizer, model, decoder or option that
/// is not there is refused by name. `end_of_text` is the text of that token, for which such a file
/// has no place. Throws UserError, without the file's name.
std::shared_ptr<const Tokenizer> parse_tokenizer_json(
    std::string_view text, const std::optional<std::string>& end_of_text);

/// The text of the end-of-text token that a tokenizer_config.json names, if it names one.
std::optional<std::string> end_of_text_of_config(std::string_view text);

}  // namespace phalanx
