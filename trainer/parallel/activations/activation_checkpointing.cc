// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/activations/activation_checkpointing.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "trainer/api/module_hook.h"
#include "trainer/api/uncounted_pass.h"
#include "trainer/api/units.h"
#include "trainer/config/tree/schema.h"
#include "trainer/parallel/activations/saved_tensors.h"
#include "trainer/parallel/batch_norm/statistics_scope.h"
#include "trainer/precision/autocast.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

using activations::SavedTensorsScope;
using torch::autograd::SavedVariableHooks;

at::Device device_of(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && !tensor.device().is_cpu()) return tensor.device();
  }
  return at::kCPU;
}

// One call of a unit: its inputs, and what its forward depends on beside them.
class Segment : public std::enable_shared_from_this<Segment> {
 public:
  Segment(std::string name, ModuleForward forward, const std::vector<at::Tensor>& inputs)
      : name_(std::move(name)),
        forward_(std::move(forward)),
        device_(device_of(inputs)),
        random_(rng_states(device_)),
        autocast_(Autocast::current(device_.type())),
        statistics_(batch_norm::StatisticsScope::current()),
        is_uncounted_(is_uncounted_pass()) {
    for (const at::Tensor& input : inputs) {
      inputs_.push_back(apart(input));
      versions_.push_back(input.defined() ? input._version() : 0);
    }
  }

  /// The forward pass, of whose saved tensors only the number is kept.
  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs);

  std::size_t count() { return saved_++; }

  /// A saved tensor; each can be had once for each time that it is computed.
  at::Tensor get(std::size_t i) {
    if (i >= computed_.size() || !computed_[i].defined()) compute();
    return std::exchange(computed_[i], at::Tensor());
  }

 private:
  static at::Tensor apart(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    return tensor.detach().set_requires_grad(tensor.requires_grad());
  }

  void compute();
  void require_unchanged() const;

  std::string name_;
  ModuleForward forward_;
  std::vector<at::Tensor> inputs_;
  std::vector<int64_t> versions_;
  at::Device device_;
  RngStates random_;
  std::optional<AutocastTo> autocast_;
  std::optional<Ranks> statistics_;  ///< Whose batch statistics it computes with.
  bool is_uncounted_;
  std::size_t saved_ = 0;
  std::vector<at::Tensor> computed_;
};

// In place of a tensor: its number among those of its segment.
class Placeholder final : public SavedVariableHooks {
 public:
  explicit Placeholder(std::shared_ptr<Segment> segment) : segment_(std::move(segment)) {}
  void call_pack_hook(const at::Tensor&) override { number_ = segment_->count(); }
  at::Tensor call_unpack_hook() override { return segment_->get(number_); }

 private:
  std::shared_ptr<Segment> segment_;
  std::size_t number_ = 0;
};

// The second time: the tensor goes to its segment, and the graph that would have saved it is let
// go.
class Collecting final : public SavedVariableHooks {
 public:
  explicit Collecting(std::vector<at::Tensor>& collected) : collected_(collected) {}
  void call_pack_hook(const at::Tensor& tensor) override { collected_.push_back(tensor.detach()); }
  at::Tensor call_unpack_hook() override {
    throw std::logic_error("the graph of a recomputation was differentiated");
  }

 private:
  std::vector<at::Tensor>& collected_;
};

std::vector<at::Tensor> Segment::run(std::vector<at::Tensor> inputs) {
  const SavedTensorsScope scope(
      [segment = shared_from_this()] { return std::make_unique<Placeholder>(segment); });
  return forward_(std::move(inputs));
}

void Segment::require_unchanged() const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].defined() || inputs_[i]._version() == versions_[i]) continue;
    throw std::runtime_error(
        fmt::format("unit {}: tensor {} of its inputs was changed in place after its forward pass, "
                    "which cannot be computed again: leave it out of activation_checkpointing",
                    name_, i));
  }
}

void Segment::compute() {
  require_unchanged();
  const RngGuard random_numbers(device_);
  set_rng_states(random_, device_);
  const Autocast autocast(autocast_);
  const batch_norm::StatisticsScope statistics(statistics_);
  const UncountedPass uncounted(is_uncounted_);
  const at::AutoGradMode with_grad(true);
  const Recomputation recomputation;
  std::vector<at::Tensor> collected;
  {
    const SavedTensorsScope scope([&collected] { return std::make_unique<Collecting>(collected); });
    std::vector<at::Tensor> inputs;
    for (const at::Tensor& input : inputs_) inputs.push_back(apart(input));
    forward_(std::move(inputs));
  }
  if (collected.size() != saved_) {
    throw std::runtime_error(fmt::format(
        "unit {} saved {} tensors in its forward pass, and {} when it was computed again: its "
        "forward does not do the same each time; leave it out of activation_checkpointing",
        name_, saved_, collected.size()));
  }
  computed_ = std::move(collected);
}

class CheckpointHook final : public ModuleHook {
 public:
  explicit CheckpointHook(std::string name) : name_(std::move(name)) {}

  std::vector<at::Tensor> around(HookedModule&, std::vector<at::Tensor> inputs,
                                 const ModuleForward& forward) override {
    // Within a chosen unit, or while one is computed again, it is a part of that.
    if (!at::GradMode::is_enabled() || SavedTensorsScope::is_active()) {
      return forward(std::move(inputs));
    }
    return std::make_shared<Segment>(name_, forward, inputs)->run(std::move(inputs));
  }

 private:
  std::string name_;
};

std::vector<NamedHooked> every(const std::vector<NamedHooked>& units, int64_t n) {
  std::vector<NamedHooked> chosen;
  for (std::size_t i = 0; i < units.size(); i += static_cast<std::size_t>(n)) {
    chosen.push_back(units[i]);
  }
  return chosen;
}

std::vector<NamedHooked> choose(torch::nn::Module& module,
                                const ActivationCheckpointing& checkpointing) {
  switch (checkpointing.policy) {
    case CheckpointedUnits::none:
      return {};
    case CheckpointedUnits::unit:
      return units(module);
    case CheckpointedUnits::every_n:
      return every(units(module), checkpointing.n);
    case CheckpointedUnits::by_name:
      return matching(hooked_modules(module), checkpointing.names,
                      "activation_checkpointing.names");
  }
  throw std::logic_error("an unknown CheckpointedUnits");
}

std::optional<std::string> missing_names(const ActivationCheckpointing& checkpointing) {
  if (checkpointing.policy != CheckpointedUnits::by_name || !checkpointing.names.empty()) {
    return std::nullopt;
  }
  return "names: policy by_name needs names of units, such as [h.*]";
}

}  // namespace

void ActivationCheckpointing::describe(config::Schema<ActivationCheckpointing>& s) {
  s.field("policy", &ActivationCheckpointing::policy,
          "which units keep only their input and are computed again in the backward pass: none, "
          "each (unit), the first of every n, or those with a name")
      .choices({{"none", CheckpointedUnits::none},
                {"unit", CheckpointedUnits::unit},
                {"every_n", CheckpointedUnits::every_n},
                {"by_name", CheckpointedUnits::by_name}})
      .resume_may_change();
  s.field("n", &ActivationCheckpointing::n, "policy every_n: one of so many")
      .unit("units")
      .at_least(1)
      .resume_may_change();
  s.field("names", &ActivationCheckpointing::names,
          "policy by_name: units, or other modules with hooks, by dotted name or by class; `*` and "
          "`?` stand for any letters: h.*, Block")
      .resume_may_change();
  s.ineffective({"n"}, "policy is not every_n", [](const ActivationCheckpointing& c) {
    return c.policy != CheckpointedUnits::every_n;
  });
  s.ineffective({"names"}, "policy is not by_name", [](const ActivationCheckpointing& c) {
    return c.policy != CheckpointedUnits::by_name;
  });
  s.check(missing_names);
}

std::size_t checkpoint_activations(torch::nn::Module& module,
                                   const ActivationCheckpointing& checkpointing) {
  const std::vector<NamedHooked> chosen = choose(module, checkpointing);
  for (const NamedHooked& unit : chosen) {
    unit.hooks->attach(std::make_shared<CheckpointHook>(unit.name));
  }
  return chosen.size();
}

}  // namespace phalanx
