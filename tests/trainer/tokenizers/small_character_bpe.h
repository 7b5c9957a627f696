// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace phalanx {

/// A tokenizer.json of BPE of characters, in Llama 2's form: <unk> (0), <s> (1), </s> (2), the
/// bytes (from 3), then "▁" (259), a to e (260 to 264), "▁a" (265), "bc" (266), "▁abc" (267). Tests
/// change it.
nlohmann::json small_character_json();

}  // namespace phalanx
