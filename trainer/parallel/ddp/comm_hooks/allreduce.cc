// SPDX-License-Identifier: Apache-2.0
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "trainer/config/tree/no_fields.h"
#include "trainer/parallel/ddp/bucket_mean.h"
#include "trainer/parallel/ddp/comm_hook.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

// Divides, then sums.
class DivideAndSum final : public c10d::CppCommHookInterface<Ranks> {
 public:
  using CppCommHookInterface::CppCommHookInterface;

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    return start_bucket_mean(bucket.getBuffer(), state_);
  }
};

/// default_hooks.allreduce_hook.
class AllReduce : public CommHook {
 public:
  using Config = config::NoFields;
  explicit AllReduce(Config) {}

  std::unique_ptr<c10d::CommHookInterface> make(const Ranks& ranks) override {
    return std::make_unique<DivideAndSum>(ranks);
  }
};

REGISTER_COMM_HOOK("allreduce", AllReduce);

}  // namespace
}  // namespace phalanx
