// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::test_device {

/// What is the device's own: allocations, copies, single values, record_stream.
void install_copies();

/// Every other operator, by the CPU's kernel of the same name.
void install_operators();

}  // namespace phalanx::test_device
