// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace phalanx {

/// A tokenizer.json of byte-level BPE: the 256 bytes, "he", "ll", "hell", "hello", " w" (260), and
/// the special token "<|endoftext|>" (261). Tests change it.
nlohmann::json small_tokenizer_json();

}  // namespace phalanx
