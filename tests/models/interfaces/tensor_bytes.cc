// SPDX-License-Identifier: Apache-2.0
#include "tests/models/interfaces/tensor_bytes.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstddef>
#include <memory>

namespace phalanx {
namespace {

class Counter final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*memory*/, int64_t bytes, size_t /*allocated*/, size_t /*reserved*/,
                         c10::Device device) override {
    if (!device.is_cpu()) return;
    live_ += bytes;  // negative where they are freed
    most_ = std::max(most_, live_);
  }
  bool memoryProfilingEnabled() const override { return true; }

  int64_t most() const { return most_; }

 private:
  int64_t live_ = 0;
  int64_t most_ = 0;
};

}  // namespace

int64_t most_tensor_bytes(const std::function<void()>& work) {
  const auto counter = std::make_shared<Counter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  work();
  return counter->most();
}

}  // namespace phalanx
