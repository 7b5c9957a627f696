// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/token_set.h"

namespace phalanx {

/// A part of a set.
class TokenRange final : public TokenSet {
 public:
  /// Tokens [begin, end), which must lie inside.
  TokenRange(std::shared_ptr<const TokenSet> whole, int64_t begin, int64_t end);

  int64_t size() const override { return end_ - begin_; }
  void read(int64_t begin, std::span<int64_t> out) const override {
    whole_->read(begin_ + begin, out);
  }
  std::vector<DocumentBegin> document_begins(int64_t begin, int64_t end) const override;
  std::string file_of(int64_t token) const override { return whole_->file_of(begin_ + token); }
  std::string place_of(int64_t token) const override { return whole_->place_of(begin_ + token); }
  std::string_view element() const override { return whole_->element(); }

 private:
  std::shared_ptr<const TokenSet> whole_;
  int64_t begin_;
  int64_t end_;
};

}  // namespace phalanx
