// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/backend_decorator.h"

#include <utility>

namespace phalanx {
namespace {

BackendDecorator& current() {
  static BackendDecorator decorator;
  return decorator;
}

}  // namespace

bool decorate_backends(BackendDecorator decorator) {
  current() = std::move(decorator);
  return true;
}

c10::intrusive_ptr<c10d::Backend> decorated(c10::intrusive_ptr<c10d::Backend> backend) {
  return current() ? current()(std::move(backend)) : backend;
}

}  // namespace phalanx
