// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "trainer/api/attachments.h"

namespace phalanx {

/// Has the files of a tokenizer, as transformers reads them, name one of `ends` as the token that
/// ends a text: tokenizer_config.json and special_tokens_map.json, which stay byte for byte where
/// they do. Beside a tokenizer.json tokenizer_config.json is made where it is not there: without it
/// transformers would take the tokenizer that is usual for the model. Does nothing where no file
/// has a text for the token.
void name_end_in_tokenizer(std::span<const int64_t> ends, Attachments& files);

}  // namespace phalanx
