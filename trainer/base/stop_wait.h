// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// What a signal to stop waits for while this lives: "this step". The innermost counts.
class StopWait {
 public:
  /// `what` must outlive the process: a signal handler may read it.
  explicit StopWait(const char* what);
  StopWait(const StopWait&) = delete;
  StopWait& operator=(const StopWait&) = delete;
  ~StopWait();

  /// At present; also for a signal handler.
  static const char* present();

 private:
  const char* outer_;
};

}  // namespace phalanx
