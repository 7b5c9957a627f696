// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// SentencePiece's rules for characters (its `precompiled_charsmap`): a double array, as
/// darts-clone writes it, of texts and what each becomes. Looks up as the package tokenizers does.
class Charsmap {
 public:
  /// Throws std::invalid_argument for what is no such map.
  explicit Charsmap(std::string_view bytes);

  /// What a text becomes by the rule for the shortest text that it begins with; nothing without
  /// one. That text is well-formed UTF-8.
  std::optional<std::string_view> find(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string texts_;  // One behind the other, each with a zero byte.
};

}  // namespace phalanx
