// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace c10 {
struct Event;
}

namespace phalanx {

/// Values of a device that the host reads later: their copy to it is enqueued at once, and reading
/// waits for that copy alone, not for what is enqueued after it.
class LateValues {
 public:
  /// `values` is of one dimension and any dtype of numbers.
  explicit LateValues(const at::Tensor& values);
  LateValues(LateValues&&) noexcept;
  LateValues& operator=(LateValues&&) noexcept;
  ~LateValues();

  std::vector<double> read() const;

 private:
  at::Tensor host_;                     // pinned where the values are on a device
  std::unique_ptr<c10::Event> copied_;  // none: they were in host memory
};

}  // namespace phalanx
