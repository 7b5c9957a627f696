// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/pipeline.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "trainer/api/clip.h"
#include "trainer/api/modules.h"
#include "trainer/parallel/broadcast_states.h"
#include "trainer/parallel/pipeline/pipeline_impl.h"

namespace phalanx {
namespace {

using pipeline::HeldParameter;
using pipeline::StagedParameter;
using pipeline::StageIsOver;
using pipeline::StagePass;

// This stage's, with rank 0's values.
std::vector<HeldParameter> parameters_of(torch::nn::Module& module, const pipeline::Stages& stages,
                                         const Ranks& ranks) {
  for (const StagedParameter& parameter : stages.parameters) {
    if (parameter.tensor.is_cpu()) continue;
    throw std::invalid_argument(fmt::format(
        "a pipeline keeps parameters in host memory: '{}' is not there", parameter.name));
  }
  broadcast_states(module, ranks, /*with_buffers=*/true);
  return pipeline::hold(stages.parameters, ranks.rank());
}

}  // namespace

Pipeline::Impl::Impl(torch::nn::Module& module, const Ranks& given)
    : ranks(given),
      stages(pipeline::divide(module, ranks.world_size())),
      parameters(parameters_of(module, stages, ranks)),
      shared(parameters, ranks.rank(), stages.count),
      buffers(modules::named_buffers(module)),
      letters(std::make_unique<pipeline::Letters>(ranks)),
      schedule(*letters, ranks.rank(), stages.count - 1 - ranks.rank()) {}

void Pipeline::Impl::hook_units() {
  pass = std::make_shared<StagePass>(
      StagePass::Units{.first = stages.first_unit(stage()),
                       .end = stages.first_unit(stage() + 1),
                       .of_model = static_cast<int64_t>(stages.units.size())},
      [weak = weak_from_this()] { return weak.lock()->receive_activation(); },
      [weak = weak_from_this()](const at::Tensor& output) {
        weak.lock()->send_activation(output);
      });
  for (std::size_t i = 0; i < stages.units.size(); ++i) {
    stages.units[i].hooks->attach(pipeline::unit_hook(pass, static_cast<int64_t>(i)),
                                  HookPlace::outermost);
  }
}

Pipeline::Pipeline(torch::nn::Module& module, const Ranks& ranks)
    : impl_(std::make_shared<Impl>(module, ranks)) {
  impl_->hook_units();
}

// Autograd's graph may hold the rest for longer.
Pipeline::~Pipeline() {
  impl_->pass->end();
  impl_->letters.reset();
}

Loss Pipeline::run(c10::function_ref<Loss()> forward, bool synchronize) {
  Impl& impl = *impl_;
  const bool trains = at::GradMode::is_enabled();
  if (trains) {
    if (impl.synchronizes) impl.require_whole_gradients();
    impl.synchronizes = synchronize;
  }
  ++impl.number;
  impl.owes_gradient = false;
  if (trains) impl.note_buffers();
  if (trains && impl.is_last()) {
    impl.answer_left_out();
  } else if (trains) {
    impl.schedule.release_left_out(impl.open);
  }
  std::optional<Loss> loss;
  impl.pass->begin();
  try {
    loss.emplace(forward());
  } catch (const StageIsOver&) {
  } catch (...) {
    impl.pass->end();
    throw;
  }
  impl.pass->end();
  if (loss && !impl.pass->is_whole()) {
    throw std::logic_error("a pipeline needs a loss that all units of the model have a part in");
  }
  if (!trains) return impl.measured(std::move(loss));
  return loss ? impl.last_loss(*std::move(loss), synchronize) : impl.loss_elsewhere(synchronize);
}

std::vector<at::Tensor> Pipeline::run_tensors(
    c10::function_ref<std::vector<at::Tensor>()> /*forward*/, bool /*synchronize*/) {
  throw std::logic_error(
      "a pipeline runs passes that end in a loss (TrainingStep::forward): a task whose "
      "training_step calls TrainingStep::run needs the trainer supervised");
}

std::optional<int64_t> Pipeline::backward_passes() const { return impl_->backward_passes; }

void Pipeline::use(c10::function_ref<void()> action) {
  pipeline::with_all_parameters(impl_->parameters, impl_->ranks, [&] { action(); });
}

void Pipeline::summon_full_params(const std::function<void()>& look) {
  pipeline::with_all_parameters(impl_->parameters, impl_->ranks, look);
}

NamedParameter Pipeline::local(const NamedParameter& parameter) const {
  const auto found = std::ranges::find_if(impl_->parameters, [&](const HeldParameter& held) {
    return held.parameter.tensor.is_same(parameter.tensor);
  });
  if (found == impl_->parameters.end()) {
    throw std::invalid_argument(
        fmt::format("the parameter '{}' is not of the pipeline's model", parameter.name));
  }
  NamedParameter local = parameter;
  ShardRange shard{.shape = parameter.tensor.sizes().vec()};
  if (found->is_here) {
    shard.end = parameter.tensor.numel();
    shard.replicas = found->parameter.stages;
  } else {
    shard.replicas = {impl_->stage()};
    local.tensor = found->without_elements;
  }
  local.shard = std::move(shard);
  return local;
}

GradientNorm Pipeline::measure_gradients(const std::vector<NamedParameter>& parameters) const {
  impl_->require_whole_gradients();
  // What two stages hold counts once.
  GradientNorm norm = phalanx::measure_gradients(parameters, [this](const NamedParameter& each) {
    return !each.shard || each.shard->replicas.front() == impl_->stage();
  });
  const at::Tensor square = norm.total.to(at::kDouble).square();
  impl_->ranks.all_reduce(square);
  // Stages whose own gradients have no share in it have the same number.
  norm.total = square.sqrt().to(type_of_norm(gradients_of(parameters)));
  return norm;
}

std::vector<MemoryUse> Pipeline::memory() const {
  MemoryUse parameters{.what = "parameters of this stage"};
  MemoryUse gradients{.what = "gradients of this stage"};
  for (const HeldParameter& held : impl_->parameters) {
    if (!held.is_here) continue;
    const at::Tensor& tensor = held.parameter.tensor;
    parameters.bytes += static_cast<int64_t>(tensor.nbytes());
    if (tensor.grad().defined()) gradients.bytes += static_cast<int64_t>(tensor.grad().nbytes());
  }
  return {parameters, gradients};
}

std::vector<std::string> Pipeline::description() const {
  std::string line = fmt::format("pipeline: {} stages (1F1B)", impl_->stages.count);
  for (int64_t stage = 0; stage < impl_->stages.count; ++stage) {
    const auto name = [&](int64_t unit) {
      return impl_->stages.units[static_cast<std::size_t>(unit)].name;
    };
    const int64_t first = impl_->stages.first_unit(stage);
    const int64_t last = impl_->stages.first_unit(stage + 1) - 1;
    line += stage == 0 ? ": " : ", ";
    line += first == last ? name(first) : name(first) + " to " + name(last);
  }
  return {line};
}

int64_t Pipeline::most_in_flight() const {
  if (impl_->is_last()) return impl_->loss_form ? 1 : 0;
  return impl_->schedule.most_waiting();
}

void Pipeline::close() { impl_->letters->shutdown(); }

}  // namespace phalanx
