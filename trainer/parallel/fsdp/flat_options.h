// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "trainer/parallel/fsdp/device_streams.h"

namespace phalanx::fsdp {

/// In what precision and where a flat parameter lives; none: as its parameters are.
struct FlatOptions {
  std::optional<at::ScalarType> storage;  ///< The type of the shard, which the optimizer moves.
  std::optional<at::ScalarType> compute;  ///< The type of the whole, which is gathered.
  std::optional<at::ScalarType> reduce;   ///< The type of gradients that move; none: as the whole.
  std::optional<at::Device> device;       ///< Where the whole is.
  bool offload = false;                   ///< The shard and its gradient are in host memory.
  bool keep_low_precision_grads = false;  ///< The shard's gradient stays in `reduce`.
  /// What is gathered and reduced on; nullptr on the CPU.
  std::shared_ptr<const DeviceStreams> streams = nullptr;
};

/// The same for certain parameters: nothing is left open.
struct FlatTypes {
  at::ScalarType storage;
  at::ScalarType compute;
  at::ScalarType reduce;
  at::ScalarType shard_gradient;
  at::Device device;
  bool is_offloaded;  ///< The whole is on a device, the shard and its gradient are not.

  /// `parameter`: one of them, which are all of one dtype.
  FlatTypes(const FlatOptions& options, const at::Tensor& parameter);

  /// Type and device of the whole.
  at::TensorOptions whole() const;
  /// Bytes of an element.
  int64_t whole_size() const { return static_cast<int64_t>(c10::elementSize(compute)); }
  int64_t shard_size() const { return static_cast<int64_t>(c10::elementSize(storage)); }
};

/// Memory of unknown content for a shard of so many elements, and for its gradient, where they lie:
/// pinned host memory where they are offloaded.
at::Tensor empty_shard(const FlatTypes& types, int64_t elements);
at::Tensor empty_shard_gradient(const FlatTypes& types, int64_t elements);

}  // namespace phalanx::fsdp
