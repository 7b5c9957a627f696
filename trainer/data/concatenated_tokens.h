// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "trainer/data/token_set.h"
#include "trainer/data/tokens_end_to_end.h"

namespace phalanx {

/// Several sets one after the other, as one.
class ConcatenatedTokens final : public TokensEndToEnd {
 public:
  explicit ConcatenatedTokens(std::vector<std::shared_ptr<const TokenSet>> sets);

  std::string_view element() const override;

 private:
  void with_part(std::size_t part, Use use) const override { use(*sets_.at(part)); }

  std::vector<std::shared_ptr<const TokenSet>> sets_;
};

}  // namespace phalanx
