// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace phalanx {

/// A tokenizer.json of the model WordLevel: these words are tokens, and "[UNK]"; a text is cut at
/// its spaces.
nlohmann::json word_json(const std::vector<std::string>& words);

}  // namespace phalanx
