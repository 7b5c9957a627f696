// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/div.h>

#include <torch/csrc/distributed/c10d/comm.hpp>

#include "trainer/config/tree/no_fields.h"
#include "trainer/parallel/ddp/comm_hook.h"
#include "trainer/ranks/collectives/process_group.h"

namespace phalanx {
namespace {

using ProcessGroupPointer = c10::intrusive_ptr<c10d::ProcessGroup>;

// Divides, then sums.
class DivideAndSum final : public c10d::CppCommHookInterface<ProcessGroupPointer> {
 public:
  using CppCommHookInterface::CppCommHookInterface;

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    std::vector<at::Tensor> gradients{bucket.getBufferRef().div_(state_->getSize())};
    return state_->allreduce(gradients)->getFuture();
  }
};

/// default_hooks.allreduce_hook.
class AllReduce : public CommHook {
 public:
  using Config = config::NoFields;
  explicit AllReduce(Config) {}

  std::unique_ptr<c10d::CommHookInterface> make(const Ranks& ranks) override {
    return std::make_unique<DivideAndSum>(process_group(ranks));
  }
};

REGISTER_COMM_HOOK("allreduce", AllReduce);

}  // namespace
}  // namespace phalanx
