// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/test_device.h"

#include "tests/test_device/allocators.h"
#include "tests/test_device/guard.h"
#include "tests/test_device/hooks.h"
#include "tests/test_device/operators.h"
#include "tests/test_device/races.h"

namespace phalanx::test_device {

void install() {
  static const bool is_installed = [] {
    install_guard();
    install_hooks();
    install_allocators();
    install_copies();
    install_operators();
    install_host_watch();
    return true;
  }();
  static_cast<void>(is_installed);
}

Counters& counters() {
  static Counters counters;
  return counters;
}

}  // namespace phalanx::test_device
