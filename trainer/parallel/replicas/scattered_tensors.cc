// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/scattered_tensors.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "trainer/parallel/replicas/scattered_batch.h"

namespace phalanx {
namespace {

int64_t batch_size_of(const std::vector<at::Tensor>& tensors) {
  std::optional<int64_t> size;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    if (tensor.dim() == 0) {
      throw std::invalid_argument(
          "DataParallel: a tensor without dimensions has no samples to scatter; pass a number");
    }
    if (size.value_or(tensor.size(0)) != tensor.size(0)) {
      throw std::invalid_argument(
          fmt::format("DataParallel scatters tensors along their first dimension, the samples; one "
                      "has {} and another {}",
                      *size, tensor.size(0)));
    }
    size = tensor.size(0);
  }
  if (!size) throw std::invalid_argument("DataParallel: there is no tensor to scatter");
  return *size;
}

at::Tensor joined(const std::vector<at::Tensor>& parts) {
  // A last batch of one sample gives a vector too, though a single device has computed.
  if (parts.front().dim() == 0) return at::stack(parts);
  return parts.size() == 1 ? parts.front() : at::cat(parts);
}

void require_as_many(const std::vector<std::vector<at::Tensor>>& of_devices) {
  for (const auto& tensors : of_devices) {
    if (tensors.size() == of_devices.front().size()) continue;
    throw std::invalid_argument(
        fmt::format("DataParallel: a replica returns {} tensors, and another one {}",
                    of_devices.front().size(), tensors.size()));
  }
}

}  // namespace

std::vector<std::vector<at::Tensor>> scatter(const std::vector<at::Tensor>& tensors,
                                             std::span<const at::Device> devices) {
  std::vector<int64_t> sizes =
      chunk_sizes(batch_size_of(tensors), static_cast<int64_t>(devices.size()));
  if (sizes.empty()) sizes.push_back(0);  // the first replica computes with no samples
  std::vector<std::vector<at::Tensor>> chunks(sizes.size());
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (const at::Tensor& tensor : tensors) {
      chunks[i].push_back(tensor.defined() ? tensor.narrow(0, begin, sizes[i]).to(devices[i])
                                           : at::Tensor());
    }
    begin += sizes[i];
  }
  return chunks;
}

std::vector<at::Tensor> gather(const std::vector<std::vector<at::Tensor>>& of_devices,
                               std::span<const at::Device> devices) {
  if (devices.size() == 1) return of_devices.front();
  require_as_many(of_devices);
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < of_devices.front().size(); ++i) {
    std::vector<at::Tensor> parts;
    for (const auto& tensors : of_devices) {
      if (tensors[i].defined()) parts.push_back(tensors[i].to(devices.front()));
    }
    if (!parts.empty() && parts.size() != of_devices.size()) {
      throw std::invalid_argument(fmt::format(
          "DataParallel: tensor {} of the results is defined on some replicas alone", i));
    }
    all.push_back(parts.empty() ? at::Tensor() : joined(parts));
  }
  return all;
}

}  // namespace phalanx
