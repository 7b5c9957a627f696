// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <shared_mutex>

#include "trainer/rpc/wire.h"

namespace torch::distributed::rpc {
class RequestCallback;
}

namespace phalanx::rpc {

/// Lets answers pass until the agent ends: the library sends each by a bare pointer to the agent,
/// and a function may answer at any time.
class Gate {
 public:
  void complete(const c10::intrusive_ptr<c10::ivalue::Future>& answer, const c10::IValue& value);
  /// Returns once none is passing.
  void close();

 private:
  std::shared_mutex mutex_;
  bool is_open_ = true;
};

/// What other workers call here, as LibTorch's agent takes it: each call goes to `hooks.serve`, and
/// its answer out through the gate.
std::unique_ptr<torch::distributed::rpc::RequestCallback> make_callback(WireHooks hooks,
                                                                        std::shared_ptr<Gate> gate);

}  // namespace phalanx::rpc
