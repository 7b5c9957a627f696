// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trainer/api/attachments.h"

namespace phalanx {

/// Has the files of a tokenizer, as transformers reads them, name one of `ends` as the token that
/// ends a text: tokenizer_config.json and special_tokens_map.json, which stay byte for byte where
/// they do. Beside a tokenizer.json a missing tokenizer_config.json is made. Does nothing where no
/// file has a text for the token.
void name_end_in_tokenizer(std::span<const int64_t> ends, Attachments& files);

/// Has tokenizer_config.json, which is made if it is missing, name the class that takes
/// tokenizer.json as it is: where it names none, transformers takes the class that is usual for
/// the model, and that one takes parts of its own. It stays byte for byte where it names a class,
/// and of byte-level BPE for GPT-2, where the usual class is right.
void name_class_of_tokenizer(const std::string& model_type, Attachments& files);

}  // namespace phalanx
