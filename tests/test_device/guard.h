// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::test_device {

/// Makes LibTorch's guards, streams and events work on the devices: an event holds the clock of its
/// stream at the time of its recording.
void install_guard();

}  // namespace phalanx::test_device
