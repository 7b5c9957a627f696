// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/pipeline.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "trainer/api/modules.h"
#include "trainer/parallel/broadcast_states.h"
#include "trainer/parallel/fsdp/after_backward.h"
#include "trainer/parallel/pipeline/letters.h"
#include "trainer/parallel/pipeline/stage_hook.h"
#include "trainer/parallel/pipeline/stages.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

using pipeline::Letters;
using pipeline::StagedParameter;
using pipeline::StageIsOver;
using pipeline::StagePass;
using pipeline::Stages;

std::string key_of(const char* what, int64_t number) { return fmt::format("{} {}", what, number); }

std::string joined_names(const Loss& loss) {
  std::string names;
  for (const auto& [name, value] : loss.parts()) names += name + '\n';
  return names;
}

std::vector<std::string> names_in(const std::string& lines) {
  std::istringstream stream(lines);
  std::vector<std::string> names;
  for (std::string name; std::getline(stream, name);) names.push_back(name);
  return names;
}

// A tensor of this shape, without memory for it.
at::Tensor nan_like(const at::Tensor& tensor) {
  const at::Tensor one = tensors::empty({1}, tensor.options().requires_grad(false));
  one.fill_(std::numeric_limits<double>::quiet_NaN());
  return one.expand(tensor.sizes());
}

class UnitHook final : public ModuleHook {
 public:
  UnitHook(std::shared_ptr<StagePass> pass, int64_t index)
      : pass_(std::move(pass)), index_(index) {}

  std::vector<at::Tensor> around(HookedModule& /*module*/, std::vector<at::Tensor> inputs,
                                 const ModuleForward& forward) override {
    return pass_->around(index_, std::move(inputs), forward);
  }

 private:
  std::shared_ptr<StagePass> pass_;
  int64_t index_;
};

}  // namespace

struct Pipeline::Impl : std::enable_shared_from_this<Pipeline::Impl> {
  struct Held {
    StagedParameter parameter;
    bool is_here = false;
    at::Tensor none = {};     ///< What a stage has of a parameter that it does not hold.
    at::Tensor earlier = {};  ///< Of one that two stages hold: what is summed over them already.

    bool is_shared() const { return parameter.stages.size() > 1; }
  };
  /// A forward pass whose backward pass is to come.
  struct Waiting {
    int64_t number = 0;
    at::Tensor output;
  };

  Ranks ranks;
  Stages stages;
  std::vector<Held> parameters;
  std::vector<std::pair<std::string, at::Tensor>> buffers;
  std::vector<uint32_t> buffer_versions;
  std::shared_ptr<StagePass> pass;
  std::unique_ptr<Letters> letters;
  std::deque<Waiting> waiting;
  std::vector<std::string> loss_names;  ///< Of passes with gradients; empty: not known yet.
  int64_t number = 0;                   ///< Of forward passes.
  int64_t round = 0;                    ///< Of passes that synchronize.
  int64_t backward_passes = 0;
  int64_t most_in_flight = 0;
  bool synchronize = true;
  bool are_summed = false;  ///< The gradients of what two stages hold.

  int64_t stage() const { return ranks.rank(); }
  int64_t last_stage() const { return stages.count - 1; }
  bool is_last() const { return stage() == last_stage(); }

  at::Tensor receive_activation();
  void send_activation(const at::Tensor& output);
  void begin_backward();
  void backward_oldest();
  void finish();
  void sum_shared();
  void require_same_buffers() const;
  Loss end_of_stage();
  Loss measured(std::optional<Loss> loss);
  void with_all_parameters(const std::function<void()>& action);
};

at::Tensor Pipeline::Impl::receive_activation() {
  const rpc::Values letter = letters->receive(stage() - 1, key_of("activation", number));
  at::Tensor received = letter.tensors.at(0).detach();
  if (!at::GradMode::is_enabled() || letter.text != "1") return received;
  received.requires_grad_(true);
  received.register_hook([weak = weak_from_this(), sent = number](const at::Tensor& gradient) {
    if (const auto self = weak.lock()) {
      self->letters->send(self->stage() - 1, key_of("gradient", sent),
                          {.tensors = {gradient.detach().contiguous()}});
    }
  });
  return received;
}

void Pipeline::Impl::send_activation(const at::Tensor& output) {
  letters->send(
      stage() + 1, key_of("activation", number),
      {.tensors = {output.detach().contiguous()}, .text = output.requires_grad() ? "1" : "0"});
  if (!at::GradMode::is_enabled()) return;
  waiting.push_back({.number = number, .output = output});
  most_in_flight = std::max(most_in_flight, static_cast<int64_t>(waiting.size()));
}

// Of a micro-batch; on the last stage what runs now is the backward pass itself.
void Pipeline::Impl::begin_backward() {
  ++backward_passes;
  if (std::exchange(are_summed, false)) {
    for (Held& held : parameters) {
      if (!held.is_here || !held.is_shared()) continue;
      held.earlier = held.parameter.tensor.grad();
      held.parameter.tensor.mutable_grad().reset();
    }
  }
  if (is_last()) {
    if (synchronize) fsdp::call_at_end_of_backward([self = shared_from_this()] { self->finish(); });
    return;
  }
  // Those behind it can have begun as many backward passes only.
  const int64_t stays = synchronize ? 0 : last_stage() - stage();
  while (static_cast<int64_t>(waiting.size()) > stays) backward_oldest();
  if (synchronize) finish();
}

void Pipeline::Impl::backward_oldest() {
  const Waiting oldest = std::move(waiting.front());
  waiting.pop_front();
  if (!oldest.output.requires_grad()) return;
  const rpc::Values letter = letters->receive(stage() + 1, key_of("gradient", oldest.number));
  torch::autograd::backward({oldest.output}, {letter.tensors.at(0)});
}

void Pipeline::Impl::finish() {
  const at::NoGradGuard no_grad;
  ++round;
  require_same_buffers();
  sum_shared();
  letters->confirm();
  for (Held& held : parameters) {
    // It counts a step alike, as of a shard without elements.
    if (!held.is_here && held.parameter.tensor.requires_grad()) {
      held.none.mutable_grad() = held.none.detach();
    }
  }
}

// The first and the last stage hold what lies outside the units: a head tied to the embedding has
// gradients on both.
void Pipeline::Impl::sum_shared() {
  if (stage() != 0 && !is_last()) return;
  const int64_t other = is_last() ? 0 : last_stage();
  const std::string key = key_of("gradients outside the units", round);
  std::vector<Held*> shared;
  rpc::Values mine;
  for (Held& held : parameters) {
    if (!held.is_shared() || !held.parameter.tensor.requires_grad()) continue;
    shared.push_back(&held);
    const at::Tensor& gradient = held.parameter.tensor.grad();
    mine.text += gradient.defined() ? '1' : '0';
    if (gradient.defined()) mine.tensors.push_back(gradient.detach().clone());
  }
  letters->send(other, key, std::move(mine));
  rpc::Values theirs = letters->receive(other, key);
  if (theirs.text.size() != shared.size()) {
    throw std::logic_error("the first and the last stage do not hold the same parameters");
  }
  auto next = theirs.tensors.begin();
  for (size_t i = 0; i < shared.size(); ++i) {
    at::Tensor& gradient = shared[i]->parameter.tensor.mutable_grad();
    if (theirs.text[i] == '1') {
      if (gradient.defined()) {
        gradient.add_(*next);
      } else {
        gradient = *next;
      }
      ++next;
    }
    at::Tensor& earlier = shared[i]->earlier;
    if (earlier.defined() && gradient.defined()) gradient.add_(earlier);
    if (earlier.defined() && !gradient.defined()) gradient = earlier;
    earlier.reset();
  }
  are_summed = true;
}

// Each stage would have its own, and a checkpoint those of one stage.
void Pipeline::Impl::require_same_buffers() const {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].second._version() == buffer_versions[i]) continue;
    throw std::logic_error(fmt::format(
        "the buffer '{}' has changed in a step: a pipeline needs buffers that stay as they are",
        buffers[i].first));
  }
}

// What goes on in the place of a loss that a later stage computes: its backward pass is this
// stage's turn to do one.
Loss Pipeline::Impl::end_of_stage() {
  if (loss_names.empty()) loss_names = names_in(letters->receive(last_stage(), "losses").text);
  std::vector<at::Tensor> values;
  for (size_t i = 0; i < loss_names.size(); ++i) {
    values.push_back(tensors::zeros({}).requires_grad_(i == 0));
  }
  fsdp::call_after_backward(values, [self = shared_from_this()] { self->begin_backward(); });
  Loss::Parts parts;
  for (size_t i = 0; i < values.size(); ++i) parts.emplace_back(loss_names[i], values[i]);
  return Loss(std::move(parts));
}

// The last stage's, on all.
Loss Pipeline::Impl::measured(std::optional<Loss> loss) {
  const at::NoGradGuard no_grad;
  const std::string lines = ranks.broadcast(loss ? joined_names(*loss) : "", last_stage());
  const std::vector<std::string> names = names_in(lines);
  const at::Tensor values =
      tensors::zeros({static_cast<int64_t>(names.size())}, at::TensorOptions().dtype(at::kDouble));
  for (size_t i = 0; loss && i < names.size(); ++i) {
    values.select(0, static_cast<int64_t>(i)).copy_(loss->parts()[i].second);
  }
  ranks.broadcast(values, last_stage());
  letters->confirm();
  if (loss) return *std::move(loss);
  Loss::Parts parts;
  for (size_t i = 0; i < names.size(); ++i) {
    parts.emplace_back(names[i], values.select(0, static_cast<int64_t>(i)));
  }
  return Loss(std::move(parts));
}

void Pipeline::Impl::with_all_parameters(const std::function<void()>& action) {
  struct GivenUpAgain {
    std::vector<Held>& parameters;
    ~GivenUpAgain() {
      for (Held& held : parameters) {
        if (!held.is_here) held.parameter.tensor.set_data(nan_like(held.parameter.tensor));
      }
    }
  };
  const GivenUpAgain given_up_again{parameters};
  for (Held& held : parameters) {
    const at::Tensor& tensor = held.parameter.tensor;
    const at::Tensor values =
        held.is_here ? tensor.variable_data()
                     : tensors::empty(tensor.sizes(), tensor.options().requires_grad(false));
    ranks.broadcast(values, held.parameter.stages.front());
    if (!held.is_here) tensor.set_data(values);
  }
  action();
}

Pipeline::Pipeline(torch::nn::Module& module, const Ranks& ranks)
    : impl_(std::make_shared<Impl>()) {
  impl_->ranks = ranks;
  impl_->stages = pipeline::divide(module, ranks.world_size());
  for (const StagedParameter& parameter : impl_->stages.parameters) {
    if (parameter.tensor.is_cpu()) continue;
    throw std::invalid_argument(fmt::format(
        "a pipeline keeps parameters in host memory: '{}' is not there", parameter.name));
  }
  broadcast_states(module, ranks, /*with_buffers=*/true);
  for (const StagedParameter& parameter : impl_->stages.parameters) {
    Impl::Held held{.parameter = parameter};
    held.is_here = std::ranges::find(parameter.stages, impl_->stage()) != parameter.stages.end();
    if (!held.is_here) {
      held.none = tensors::empty({0}, parameter.tensor.options().requires_grad(false));
      parameter.tensor.set_data(nan_like(parameter.tensor));
    }
    impl_->parameters.push_back(std::move(held));
  }
  impl_->buffers = modules::named_buffers(module);
  for (const auto& [name, buffer] : impl_->buffers) {
    impl_->buffer_versions.push_back(buffer._version());
  }
  const std::weak_ptr<Impl> weak = impl_;
  impl_->pass = std::make_shared<StagePass>(
      StagePass::Units{.first = impl_->stages.first_unit(impl_->stage()),
                       .end = impl_->stages.first_unit(impl_->stage() + 1),
                       .of_model = static_cast<int64_t>(impl_->stages.units.size())},
      [weak] { return weak.lock()->receive_activation(); },
      [weak](const at::Tensor& output) { weak.lock()->send_activation(output); });
  for (size_t i = 0; i < impl_->stages.units.size(); ++i) {
    impl_->stages.units[i].hooks->attach(
        std::make_shared<UnitHook>(impl_->pass, static_cast<int64_t>(i)), HookPlace::outermost);
  }
  impl_->letters = std::make_unique<Letters>(ranks);
}

// Autograd's graph may hold the rest for longer.
Pipeline::~Pipeline() {
  impl_->pass->end();
  impl_->letters.reset();
}

Loss Pipeline::run(c10::function_ref<Loss()> forward, bool synchronize) {
  Impl& impl = *impl_;
  const bool trains = at::GradMode::is_enabled();
  ++impl.number;
  impl.synchronize = synchronize;
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
  if (!loss) return impl.end_of_stage();
  if (impl.loss_names.empty()) {
    impl.loss_names = names_in(joined_names(*loss));
    for (int64_t stage = 0; stage < impl.last_stage(); ++stage) {
      impl.letters->send(stage, "losses", {.text = joined_names(*loss)});
    }
  }
  std::vector<at::Tensor> values;
  for (const auto& [name, value] : loss->parts()) values.push_back(value);
  fsdp::call_after_backward(values, [self = impl_] { self->begin_backward(); });
  impl.most_in_flight = std::max<int64_t>(impl.most_in_flight, 1);
  return std::move(*loss).with_values(values);
}

std::vector<at::Tensor> Pipeline::run_tensors(
    c10::function_ref<std::vector<at::Tensor>()> /*forward*/, bool /*synchronize*/) {
  throw std::logic_error(
      "a pipeline runs passes that end in a loss: a task with a training_step that runs others "
      "needs the trainer supervised");
}

std::optional<int64_t> Pipeline::backward_passes() const { return impl_->backward_passes; }

void Pipeline::use(c10::function_ref<void()> action) {
  impl_->with_all_parameters([&] { action(); });
}

void Pipeline::summon_full_params(const std::function<void()>& look) {
  impl_->with_all_parameters(look);
}

NamedParameter Pipeline::local(const NamedParameter& parameter) const {
  const auto found = std::ranges::find_if(impl_->parameters, [&](const Impl::Held& held) {
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
    local.tensor = found->none;
  }
  local.shard = std::move(shard);
  return local;
}

GradientNorm Pipeline::measure_gradients(const std::vector<NamedParameter>& parameters) const {
  // What two stages hold counts once.
  GradientNorm norm = phalanx::measure_gradients(parameters, [this](const NamedParameter& each) {
    return !each.shard || each.shard->replicas.front() == impl_->stage();
  });
  const at::Tensor square = norm.total.to(at::kDouble).square();
  impl_->ranks.all_reduce(square);
  norm.total = square.sqrt().to(norm.total.scalar_type());
  return norm;
}

std::vector<MemoryUse> Pipeline::memory() const {
  MemoryUse parameters{.what = "parameters of this stage"};
  MemoryUse gradients{.what = "gradients of this stage"};
  for (const Impl::Held& held : impl_->parameters) {
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
      return impl_->stages.units[static_cast<size_t>(unit)].name;
    };
    const int64_t first = impl_->stages.first_unit(stage);
    const int64_t last = impl_->stages.first_unit(stage + 1) - 1;
    line += stage == 0 ? ": " : ", ";
    line += first == last ? name(first) : name(first) + " to " + name(last);
  }
  return {line};
}

int64_t Pipeline::most_in_flight() const { return impl_->most_in_flight; }

void Pipeline::close() { impl_->letters->shutdown(); }

}  // namespace phalanx
