// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

namespace phalanx::test_device {

inline bool is_ours(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::DeviceType::PrivateUse1;
}

/// The CPU's names for tensors of a device, for one call of a kernel, and the way back for what it
/// returns.
class Aliases {
 public:
  enum class Use { reads, writes, looks_at };  ///< looks_at: at shapes alone, as a view does.

  /// A tensor of the CPU over the memory of a device's tensor, a view of the same storage.
  at::Tensor of(const at::Tensor& tensor, Use use = Use::reads);

  /// A tensor of the device for a result of the CPU's kernel.
  struct Result {
    at::Tensor tensor;
    bool is_fresh = false;  ///< Its memory is none of an argument's.
  };
  Result back(const at::Tensor& result, int device);

  /// Gives the arguments that were written the shape and memory that the kernel gave their aliases,
  /// as those do that resize what they write to.
  void write_back(int device);

 private:
  struct Written {
    at::Tensor original;
    at::Tensor alias;
  };

  c10::Storage take_over(c10::StorageImpl& storage, int device);

  std::unordered_map<c10::StorageImpl*, c10::Storage> aliases_;
  std::unordered_map<c10::StorageImpl*, c10::Storage> originals_;  // by the alias
  std::vector<Written> written_;
};

/// An alias by itself.
at::Tensor cpu_alias(const at::Tensor& tensor);

}  // namespace phalanx::test_device
