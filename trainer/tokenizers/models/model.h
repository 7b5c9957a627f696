// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace phalanx {

/// Makes tokens of the pieces of a text, as a model of the package tokenizers does. Thread-safe.
class Model {
 public:
  virtual ~Model() = default;

  /// Appends the tokens of a piece: well-formed UTF-8, not empty.
  virtual void encode(std::string_view piece, std::vector<int32_t>& tokens) const = 0;

  /// The text of a token, if it is one.
  virtual std::optional<std::string_view> text_of(int32_t token) const = 0;

  /// The token of a text, if it has one.
  virtual std::optional<int32_t> token_of(std::string_view text) const = 0;

  /// How many tokens it has.
  virtual std::size_t count() const = 0;

  /// One more than the largest token.
  virtual int32_t size() const = 0;
};

}  // namespace phalanx
