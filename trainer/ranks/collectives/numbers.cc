// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/numbers.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <iterator>

#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

at::Tensor tensor_of(std::span<const int64_t> numbers) {
  at::Tensor tensor = tensors::empty({std::ssize(numbers)}, at::kLong);
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

std::vector<int64_t> numbers_of(const at::Tensor& tensor) {
  const auto* const first = tensor.const_data_ptr<int64_t>();
  return {first, first + tensor.numel()};
}

}  // namespace

int64_t broadcast_number(const Ranks& ranks, int64_t number, int64_t source) {
  const at::Tensor tensor = tensor_of(std::span(&number, 1));
  ranks.broadcast(tensor, source);
  return numbers_of(tensor).front();
}

std::vector<int64_t> all_gather_numbers(const Ranks& ranks, std::span<const int64_t> numbers) {
  const at::Tensor all = tensors::empty({ranks.world_size() * std::ssize(numbers)}, at::kLong);
  ranks.all_gather(all, tensor_of(numbers));
  return numbers_of(all);
}

std::vector<int64_t> all_reduce_numbers(const Ranks& ranks, std::span<const int64_t> numbers,
                                        Reduction reduction) {
  const at::Tensor tensor = tensor_of(numbers);
  ranks.all_reduce(tensor, reduction);
  return numbers_of(tensor);
}

}  // namespace phalanx
