// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "trainer/registry/kinds.h"

namespace c10d {
class CommHookInterface;
}

namespace phalanx {

class Ranks;

/// How DDP reduces a bucket of gradients to their mean over all ranks. A class derives from this,
/// has a `Config` and registers itself with REGISTER_COMM_HOOK; `parallel.ddp.comm_hook`
/// picks it. What `make` returns is usually derived from
/// c10d::CppCommHookInterface: its runHook gets the bucket and returns a Future of the reduced
/// tensor, divided by the world size.
class CommHook {
 public:
  virtual ~CommHook() = default;

  virtual std::unique_ptr<c10d::CommHookInterface> make(const Ranks& ranks) = 0;
};

}  // namespace phalanx
