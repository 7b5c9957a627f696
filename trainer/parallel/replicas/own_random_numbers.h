// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>

namespace phalanx {

/// For the length of a scope, operators that this thread calls without a generator draw from one of
/// its own on the CPU, in place of the process's: what several threads draw at a time then depends
/// on their seeds alone. Tensors of other devices draw from these devices' generators. Scopes may
/// nest.
class OwnRandomNumbers {
 public:
  explicit OwnRandomNumbers(uint64_t seed);
  OwnRandomNumbers(const OwnRandomNumbers&) = delete;
  OwnRandomNumbers& operator=(const OwnRandomNumbers&) = delete;
  ~OwnRandomNumbers();

  /// Changes LibTorch's tables of operators for all scopes to come, which costs milliseconds once;
  /// by itself the first scope does. Best where no other thread calls operators yet.
  static void prepare();

 private:
  at::Generator generator_;
  const at::Generator* before_;
  c10::impl::IncludeDispatchKeyGuard mode_;
};

}  // namespace phalanx
