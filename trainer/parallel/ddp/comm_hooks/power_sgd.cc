// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <vector>

#include "trainer/config/tree/schema.h"
#include "trainer/parallel/ddp/comm_hook.h"
#include "trainer/parallel/ddp/power_sgd/buckets.h"
#include "trainer/parallel/ddp/power_sgd/layers.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

template <class Compression>
class RunCompression final : public c10d::CppCommHookInterface<std::shared_ptr<Compression>> {
 public:
  using c10d::CppCommHookInterface<std::shared_ptr<Compression>>::CppCommHookInterface;

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    return this->state_->run(bucket);
  }
};

template <class Compression, class Options>
class PowerSgd : public CommHook {
 public:
  using Config = Options;
  explicit PowerSgd(const Config& config) : config_(config) {}

  void bind(const std::vector<NamedParameter>& parameters, const Ranks& ranks) override {
    compression_ = std::make_shared<Compression>(config_, ranks, parameters, tell());
  }

  std::unique_ptr<c10d::CommHookInterface> make(const Ranks& /*ranks*/) override {
    if (!compression_) throw std::logic_error("PowerSGD is made before it is bound");
    return std::make_unique<RunCompression<Compression>>(compression_);
  }

  std::vector<NamedStateful> kept_states() override {
    return compression_ ? compression_->kept_states() : std::vector<NamedStateful>();
  }

 private:
  Config config_;
  std::shared_ptr<Compression> compression_;
};

// powerSGD_hook.py's powerSGD_hook and batched_powerSGD_hook.
using LayerwisePowerSgd = PowerSgd<power_sgd::Layers, power_sgd::LayerOptions>;
using BatchedPowerSgd = PowerSgd<power_sgd::Buckets, power_sgd::BucketOptions>;

REGISTER_COMM_HOOK("powerSGD", LayerwisePowerSgd);
REGISTER_COMM_HOOK("batched_powerSGD", BatchedPowerSgd);

}  // namespace
}  // namespace phalanx
