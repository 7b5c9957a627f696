// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace phalanx {

/// Wraps a backend of a group of ranks, or gives it back as it is.
using BackendDecorator =
    std::function<c10::intrusive_ptr<c10d::Backend>(c10::intrusive_ptr<c10d::Backend> backend)>;

/// Has the backend for host memory of every group that is made from now on go through `decorator`:
/// what measures or delays collectives hooks in here. A process has one decorator, the last that
/// was set. Returns true, so that a global variable can call it.
bool decorate_backends(BackendDecorator decorator);

/// The backend as the decorator makes it; itself without one.
c10::intrusive_ptr<c10d::Backend> decorated(c10::intrusive_ptr<c10d::Backend> backend);

}  // namespace phalanx
