// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/token_set.h"

namespace phalanx {

/// Tokens without a file, and where documents begin in them.
class StoredNumbers : public TokenSet {
 public:
  explicit StoredNumbers(std::vector<int64_t> tokens, std::vector<DocumentBegin> documents = {})
      : tokens_(std::move(tokens)), documents_(std::move(documents)) {}

  int64_t size() const override { return static_cast<int64_t>(tokens_.size()); }
  void read(int64_t begin, std::span<int64_t> out) const override {
    std::copy_n(tokens_.begin() + begin, out.size(), out.begin());
  }
  std::vector<DocumentBegin> document_begins(int64_t begin, int64_t end) const override {
    std::vector<DocumentBegin> found;
    for (const DocumentBegin& document : documents_) {
      if (document.place >= begin && document.place < end) found.push_back(document);
    }
    return found;
  }
  std::string file_of(int64_t) const override { return "numbers"; }
  std::string place_of(int64_t token) const override { return "token " + std::to_string(token); }

 private:
  std::vector<int64_t> tokens_;
  std::vector<DocumentBegin> documents_;
};

/// The numbers of a tensor, row by row.
inline std::vector<int64_t> numbers_in(const at::Tensor& tensor) {
  const auto* begin = tensor.const_data_ptr<int64_t>();
  return {begin, begin + tensor.numel()};
}

}  // namespace phalanx
