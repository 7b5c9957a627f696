// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <span>
#include <vector>

namespace phalanx {

/// Cuts tensors along their first dimension into torch.chunk's chunks, at most one a device, and
/// brings each there; autograd goes through. By device; undefined tensors stay so for each. Throws
/// std::invalid_argument for no defined tensor, one without dimensions, and sizes that differ.
std::vector<std::vector<at::Tensor>> scatter(const std::vector<at::Tensor>& tensors,
                                             std::span<const at::Device> devices);

/// Puts tensors together again along their first dimension, on the first device; autograd goes
/// through. Those without dimensions become a vector, except with a single device. `of_devices`:
/// the tensors of each device that has computed, the same number for each. Throws
/// std::invalid_argument where they are not as many, or one is undefined for some devices alone.
std::vector<at::Tensor> gather(const std::vector<std::vector<at::Tensor>>& of_devices,
                               std::span<const at::Device> devices);

}  // namespace phalanx
