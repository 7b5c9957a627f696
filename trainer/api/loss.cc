// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/loss.h"

#include <stdexcept>
#include <unordered_set>

namespace phalanx {

Loss::Loss(Parts parts) : parts_(std::move(parts)) {
  if (parts_.empty()) throw std::invalid_argument("a task returned a loss without any part");
  if (parts_.size() == 1) return;
  std::unordered_set<std::string> names{"loss"};
  for (const auto& [name, value] : parts_) {
    if (names.insert(name).second) continue;
    throw std::invalid_argument(
        name == "loss" ? "a part of a named loss may not be called 'loss': that is the sum"
                       : "two parts of a named loss are called '" + name + "'");
  }
}

at::Tensor Loss::total() const {
  at::Tensor sum = parts_.front().second;
  for (size_t i = 1; i < parts_.size(); ++i) sum = sum.add(parts_[i].second);
  return sum;
}

}  // namespace phalanx
