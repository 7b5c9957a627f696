// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::test_device {

/// Answers what LibTorch asks of an accelerator: how many devices, pinned memory, generators.
void install_hooks();

}  // namespace phalanx::test_device
