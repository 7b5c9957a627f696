// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// The same tokenizer, but the text of a special token is that token, whatever SpecialText says.
std::shared_ptr<const Tokenizer> reading_special_tokens(std::shared_ptr<const Tokenizer> tokenizer);

/// That tokenizer again, of one that reading_special_tokens made; any other stays as it is.
std::shared_ptr<const Tokenizer> reading_as_told(std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace phalanx
