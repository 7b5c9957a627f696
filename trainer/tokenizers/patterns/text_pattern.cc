// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/patterns/text_pattern.h"

namespace phalanx {

TextPattern::TextPattern(const nlohmann::json& pattern) {
  if (pattern.contains("String")) {
    text_ = pattern.at("String").get<std::string>();
    // It matches between all characters: rules for that are the regular expressions'.
    if (text_.empty()) regex_ = std::make_shared<SplitPattern>("");
    return;
  }
  regex_ = std::make_shared<SplitPattern>(pattern.at("Regex").get<std::string>());
}

}  // namespace phalanx
