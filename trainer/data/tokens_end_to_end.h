// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/end_to_end.h"
#include "trainer/data/token_set.h"

namespace phalanx {

/// Base of sets that are made of others, one after the other.
class TokensEndToEnd : public TokenSet {
 public:
  int64_t size() const final { return parts_.size(); }
  void read(int64_t begin, std::span<int64_t> out) const final;
  std::vector<DocumentBegin> document_begins(int64_t begin, int64_t end) const final;
  std::string file_of(int64_t token) const final;
  std::string place_of(int64_t token) const final;

 protected:
  using Use = c10::function_ref<void(const TokenSet& part)>;

  /// Filled by the constructor of the derived class.
  EndToEnd parts_;

 private:
  /// Calls `use` with a part, which may live no longer.
  virtual void with_part(std::size_t part, Use use) const = 0;
};

}  // namespace phalanx
