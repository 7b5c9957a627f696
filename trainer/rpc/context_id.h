// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx::rpc {

/// The context of LibTorch's distributed autograd that this thread is in; -1: none.
int64_t current_context();

/// While it lives, this thread is in that context (-1: in none), afterwards in the one before.
class ContextScope {
 public:
  explicit ContextScope(int64_t context);
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope();

 private:
  int64_t before_;
};

}  // namespace phalanx::rpc
