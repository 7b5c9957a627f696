// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// Whether this thread's forward pass is that of a micro-batch that does not count (Batch::counts):
/// what is computed over the batches of all ranks leaves its samples out.
bool is_uncounted_pass();

/// Makes it so, or not so, for the length of a scope.
class UncountedPass {
 public:
  explicit UncountedPass(bool is_uncounted);
  UncountedPass(const UncountedPass&) = delete;
  UncountedPass& operator=(const UncountedPass&) = delete;
  ~UncountedPass();

 private:
  bool before_;
};

}  // namespace phalanx
