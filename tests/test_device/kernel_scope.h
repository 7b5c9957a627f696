// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::test_device {

/// While a kernel of the CPU computes for a device on this thread: what it allocates lies in that
/// device's memory, so that its results are there without a copy.
class KernelScope {
 public:
  explicit KernelScope(int device);
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;
  ~KernelScope();

  /// Whether this thread is in one, and of which device.
  static bool is_active();
  static int device();

 private:
  int outer_;
};

}  // namespace phalanx::test_device
