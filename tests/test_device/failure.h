// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::test_device {

inline constexpr const char* kFailure = "the device has failed";

/// From now on, and for good in this process, no device answers, as CUDA after an error of a
/// kernel: events, streams, operators, copies and generators throw c10::Error with kFailure. Memory
/// can still be given back.
void fail();

/// Throws where it has failed.
void require_answer();

}  // namespace phalanx::test_device
