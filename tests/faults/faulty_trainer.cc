// SPDX-License-Identifier: Apache-2.0
// A trainer in which one rank meets a fault of a given kind at a given place: section `fault`.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/div.h>
#include <signal.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/config/tree/schema.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/mixins/logging_mixin.h"
#include "trainer/mixins/parallel_mixin.h"
#include "trainer/mixins/validation_mixin.h"
#include "trainer/parallel/ddp/comm_hook.h"
#include "trainer/ranks/collectives/process_group.h"
#include "trainer/registry/kinds.h"
#include "trainer/registry/trainers.h"
#include "trainer/trainer.h"

namespace phalanx {
namespace {

enum class FaultKind { kill, stop, exit, exception, nan, abort, uncaught };
enum class FaultPhase { init, forward, backward, all_reduce, validation, checkpoint };

struct FaultConfig {
  std::optional<int64_t> rank;
  int64_t step = 1;
  FaultPhase phase = FaultPhase::init;
  FaultKind kind = FaultKind::kill;

  static void describe(config::Schema<FaultConfig>& s) {
    s.field("rank", &FaultConfig::rank, "whose fault; null: none").resume_may_change();
    s.field("step", &FaultConfig::step, "when; 0: before the first").resume_may_change();
    s.field("phase", &FaultConfig::phase, "where")
        .choices({{"init", FaultPhase::init},
                  {"forward", FaultPhase::forward},
                  {"backward", FaultPhase::backward},
                  {"all_reduce", FaultPhase::all_reduce},
                  {"validation", FaultPhase::validation},
                  {"checkpoint", FaultPhase::checkpoint}})
        .resume_may_change();
    s.field("kind", &FaultConfig::kind, "what happens")
        .choices({{"kill", FaultKind::kill},
                  {"stop", FaultKind::stop},
                  {"exit", FaultKind::exit},
                  {"exception", FaultKind::exception},
                  {"nan", FaultKind::nan},
                  {"abort", FaultKind::abort},
                  {"uncaught", FaultKind::uncaught}})
        .resume_may_change();
  }
};

// What this rank is to meet; the communication hook knows neither the trainer nor its config.
struct Fault {
  FaultConfig config;
  int64_t rank = 0;
  int64_t step = 0;

  bool is_met(FaultPhase phase) const {
    return config.rank == rank && config.step == step && config.phase == phase;
  }

  void meet(FaultPhase phase) const {
    if (!is_met(phase)) return;
    switch (config.kind) {
      case FaultKind::kill:
        ::raise(SIGKILL);
        return;
      case FaultKind::stop:
        ::raise(SIGSTOP);
        return;
      case FaultKind::exit:
        std::_Exit(0);
      case FaultKind::exception:
        throw std::runtime_error("an injected fault");
      case FaultKind::nan:
        return;               // the backward pass makes it
      case FaultKind::abort:  // as c10d's watchdog of NCCL, from a thread of its own
        std::thread([] { std::abort(); }).join();
        return;
      case FaultKind::uncaught:
        std::thread([] { throw std::runtime_error("an injected fault"); }).join();
    }
  }
};
Fault fault;

template <class Derived>
class FaultMixin : public Mixin<Derived, FaultMixin> {
 public:
  static constexpr std::string_view kSection = "fault";
  static constexpr std::string_view kMeaning = "what one rank meets";
  using Config = FaultConfig;
  using Hooks = HookList<Setup, BeforeForward, AfterLoss, StepEnd, ValidationStart>;

  explicit FaultMixin(Config config) { fault.config = config; }

  void on_setup() {
    fault.rank = this->trainer().ranks().rank();
    fault.meet(FaultPhase::init);
  }
  void on_before_forward(const State& state, const Batch&) {
    fault.step = state.step;
    fault.meet(FaultPhase::forward);
  }
  void on_after_loss(const State&, const Batch&, const Loss& loss) {
    loss.parts().front().second.register_hook([](const at::Tensor& gradient) {
      fault.meet(FaultPhase::backward);
      const bool is_nan = fault.config.kind == FaultKind::nan && fault.is_met(FaultPhase::backward);
      return is_nan ? gradient * std::numeric_limits<double>::quiet_NaN() : gradient;
    });
  }
  void on_step_end(const State&, const StepResult&) { fault.meet(FaultPhase::checkpoint); }
  void on_validation_start(const State&) { fault.meet(FaultPhase::validation); }
};

// As "allreduce"; also a hook of a user's own.
class FaultyReduction final
    : public c10d::CppCommHookInterface<c10::intrusive_ptr<c10d::ProcessGroup>> {
 public:
  using CppCommHookInterface::CppCommHookInterface;

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    fault.meet(FaultPhase::all_reduce);
    std::vector<at::Tensor> gradients{bucket.getBufferRef().div_(state_->getSize())};
    return state_->allreduce(gradients)->getFuture();
  }
};

class FaultyHook : public CommHook {
 public:
  struct Config {
    static void describe(config::Schema<Config>&) {}
  };
  explicit FaultyHook(Config) {}

  std::unique_ptr<c10d::CommHookInterface> make(const Ranks& ranks) override {
    return std::make_unique<FaultyReduction>(process_group(ranks));
  }
};

REGISTER_COMM_HOOK("faulty", FaultyHook);
REGISTER_TRAINER(
    "faulty", Trainer<ParallelMixin, LoggingMixin, ValidationMixin, FaultMixin, CheckpointMixin>);

}  // namespace
}  // namespace phalanx
