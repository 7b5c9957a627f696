// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/loss_parts.h"

#include <cstdint>
#include <span>

#include "trainer/ranks/ranks.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

template <class Exchange>
void exchange_numbers(NamedValues& values, const Exchange& exchange) {
  const at::Tensor tensor = tensors::empty({static_cast<int64_t>(values.size())}, at::kDouble);
  const std::span numbers(tensor.mutable_data_ptr<double>(), values.size());
  for (size_t i = 0; i < values.size(); ++i) numbers[i] = values[i].second;
  exchange(tensor);
  for (size_t i = 0; i < values.size(); ++i) values[i].second = numbers[i];
}

}  // namespace

void add_to_part(std::vector<std::pair<std::string, at::Tensor>>& parts, std::string_view name,
                 const at::Tensor& value) {
  const auto found = std::ranges::find(
      parts, name, [](const auto& part) -> std::string_view { return part.first; });
  if (found == parts.end()) {
    parts.emplace_back(name, value);
  } else {
    found->second = found->second.add(value);
  }
}

void sum_over_ranks(NamedValues& values, const Ranks& ranks) {
  if (ranks.is_single_rank()) return;
  exchange_numbers(values, [&](const at::Tensor& tensor) { ranks.all_reduce(tensor); });
}

void take_of_first_rank(NamedValues& values, const Ranks& ranks) {
  if (ranks.is_single_rank() || values.empty()) return;
  exchange_numbers(values, [&](const at::Tensor& tensor) { ranks.broadcast(tensor); });
}

}  // namespace phalanx
