// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/search.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

namespace phalanx {

bool ends_text(const SearchRequest& request, int32_t token) {
  return std::ranges::find(request.end_of_text, token) != request.end_of_text.end();
}

bool is_interrupted(const SearchRequest& request) {
  return request.hooks.is_interrupted && request.hooks.is_interrupted();
}

bool any_rank(const SearchRequest& request, bool writes) {
  return request.hooks.any_rank ? request.hooks.any_rank(writes) : writes;
}

at::Tensor known_of(const at::Tensor& logits, const SearchRequest& request) {
  const int64_t vocabulary = request.vocabulary_size;
  std::vector<int64_t> beyond;
  for (const int64_t token : request.end_of_text) {
    if (token >= vocabulary && token < logits.size(1)) beyond.push_back(token);
  }
  if (beyond.empty()) return logits.narrow(1, 0, vocabulary);
  const int64_t end = std::ranges::max(beyond) + 1;
  at::Tensor is_unknown = at::zeros({end}, at::kBool);
  is_unknown.narrow(0, vocabulary, end - vocabulary).fill_(true);
  for (const int64_t token : beyond) is_unknown[token].fill_(false);
  return logits.narrow(1, 0, end).masked_fill(is_unknown.to(logits.device()),
                                              -std::numeric_limits<double>::infinity());
}

at::Tensor tensor_of(std::span<const int64_t> values) {
  at::Tensor tensor = at::empty({std::ssize(values)}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

}  // namespace phalanx
