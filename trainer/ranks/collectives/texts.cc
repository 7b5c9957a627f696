// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other as text.

#include <ATen/ops/empty.h>

#include <cstring>
#include <string>
#include <vector>

#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

at::Tensor bytes_of(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  return bytes;
}

at::Tensor number(int64_t value) {
  at::Tensor tensor = at::empty({1}, at::kLong);
  *tensor.mutable_data_ptr<int64_t>() = value;
  return tensor;
}

}  // namespace

std::string Ranks::broadcast(const std::string& text, int64_t source) const {
  group_->end->require_open("broadcast");
  if (is_single_rank()) return text;
  const at::Tensor size = number(static_cast<int64_t>(text.size()));
  broadcast(size, source);
  const auto bytes = static_cast<size_t>(*size.const_data_ptr<int64_t>());
  std::string result = text;
  result.resize(bytes);
  if (bytes == 0) return result;
  const at::Tensor content = bytes_of(result);
  broadcast(content, source);
  std::memcpy(result.data(), content.const_data_ptr(), bytes);
  return result;
}

std::vector<std::string> Ranks::all_gather(const std::string& text) const {
  group_->end->require_open("all-gather");
  if (is_single_rank()) return {text};
  const at::Tensor longest = number(static_cast<int64_t>(text.size()));
  all_reduce(longest, Reduction::maximum);
  // Each text in a place of equal size, its length in front.
  constexpr auto kLengthBytes = static_cast<int64_t>(sizeof(int64_t));
  const int64_t place = kLengthBytes + *longest.const_data_ptr<int64_t>();
  at::Tensor mine = at::empty({place}, at::kByte).zero_();
  const auto length = static_cast<int64_t>(text.size());
  std::memcpy(mine.mutable_data_ptr(), &length, sizeof(length));
  std::memcpy(static_cast<char*>(mine.mutable_data_ptr()) + kLengthBytes, text.data(), text.size());
  const at::Tensor all = at::empty({place * world_size()}, at::kByte);
  all_gather(all, mine);
  std::vector<std::string> texts;
  for (int64_t r = 0; r < world_size(); ++r) {
    const char* begin = static_cast<const char*>(all.const_data_ptr()) + r * place;
    int64_t size = 0;
    std::memcpy(&size, begin, sizeof(size));
    texts.emplace_back(begin + kLengthBytes, static_cast<size_t>(size));
  }
  return texts;
}

}  // namespace phalanx
