// SPDX-License-Identifier: Apache-2.0
// A stage's passes: what it gets and sends, its losses, and its backward passes.

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <stdexcept>

#include "trainer/parallel/fsdp/after_backward.h"
#include "trainer/parallel/pipeline/pipeline_impl.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

using pipeline::activation_key;
using pipeline::gradient_key;
using pipeline::LossForm;

constexpr const char* kLosses = "losses";  // the letter with their form

}  // namespace

at::Tensor Pipeline::Impl::receive_activation() {
  const rpc::Values letter = letters->receive(stage() - 1, activation_key(number));
  at::Tensor received = letter.tensors.at(0).detach();
  if (!at::GradMode::is_enabled() || letter.text != "1") return received;
  received.requires_grad_(true);
  received.register_hook([weak = weak_from_this(), sent = number](const at::Tensor& gradient) {
    const auto self = weak.lock();
    if (!self || !self->letters) return;
    self->letters->send(self->stage() - 1, gradient_key(sent),
                        {.tensors = {gradient.detach().contiguous()}});
  });
  owes_gradient = true;
  if (is_last()) owed.insert(number);
  return received;
}

void Pipeline::Impl::send_activation(const at::Tensor& output) {
  letters->send(
      stage() + 1, activation_key(number),
      {.tensors = {output.detach().contiguous()}, .text = output.requires_grad() ? "1" : "0"});
  if (!at::GradMode::is_enabled()) return;
  schedule.add({.number = number, .output = output, .owes_gradient = owes_gradient});
}

// On the last stage. The others find the answer where they wait for a gradient.
void Pipeline::Impl::answer_left_out() {
  for (const int64_t left_out : open.take_left_out()) {
    if (owed.erase(left_out) == 0) continue;
    letters->send(stage() - 1, gradient_key(left_out), pipeline::no_gradient());
  }
}

void Pipeline::Impl::call_at_backward(std::vector<at::Tensor>& values, bool synchronize) {
  fsdp::call_after_backward(
      values, [self = shared_from_this(), of_pass = number, synchronize,
               graph = open.open(number)] { self->begin_backward(of_pass, synchronize); });
}

// On the last stage what runs now is the backward pass itself.
void Pipeline::Impl::begin_backward(int64_t of_pass, bool synchronize) {
  if (!letters) throw std::logic_error("a backward pass after the end of its pipeline");
  if (!open.close(of_pass)) {
    throw std::logic_error(fmt::format(
        "pass {} has had its backward pass: a pipeline has one for each forward pass", of_pass));
  }
  ++backward_passes;
  are_partial = true;
  if (synchronize) require_no_open_pass(of_pass);
  shared.set_aside_sums();
  if (is_last()) {
    owed.erase(of_pass);
    if (synchronize) fsdp::call_at_end_of_backward([self = shared_from_this()] { self->finish(); });
    return;
  }
  schedule.backward(of_pass, /*all=*/synchronize, open);
  if (synchronize) finish();
}

// Stages before the last one do all backward passes that wait, and one of these would never come.
void Pipeline::Impl::require_no_open_pass(int64_t of_pass) {
  if (is_last()) {
    answer_left_out();
  } else {
    schedule.release_left_out(open);
  }
  const auto other = open.first();
  if (!other) return;
  throw std::logic_error(
      fmt::format("pass {} has had no backward pass before that of pass {}, which synchronizes: "
                  "call backward for each loss by itself and in order, or let go of the loss first",
                  *other, of_pass));
}

void Pipeline::Impl::require_whole_gradients() const {
  if (!are_partial) return;
  throw std::logic_error(
      "gradients of some passes of a pipeline, without the backward pass of the one that "
      "synchronizes: do that one last, before gradients are used or dropped");
}

void Pipeline::Impl::finish() {
  const at::NoGradGuard no_grad;
  are_partial = false;
  require_same_buffers();
  shared.sum(*letters);
  letters->confirm();
  pipeline::give_empty_gradients(parameters);
}

// Between steps others write them, such as one who loads a checkpoint.
void Pipeline::Impl::note_buffers() {
  if (!buffer_versions.empty()) return;
  for (const auto& [name, buffer] : buffers) buffer_versions.push_back(buffer._version());
}

// Each stage would have its own, and a checkpoint those of one stage.
void Pipeline::Impl::require_same_buffers() {
  for (std::size_t i = 0; i < buffer_versions.size(); ++i) {
    if (buffers[i].second._version() == buffer_versions[i]) continue;
    throw std::logic_error(fmt::format(
        "the buffer '{}' has changed in a step: a pipeline needs buffers that stay as they are",
        buffers[i].first));
  }
  buffer_versions.clear();
}

Loss Pipeline::Impl::last_loss(Loss loss, bool synchronize) {
  LossForm form(loss);
  if (!loss_form) {
    loss_form = std::move(form);
    for (int64_t earlier = 0; earlier < last_stage(); ++earlier) {
      letters->send(earlier, kLosses, {.text = loss_form->text()});
    }
  } else if (form != *loss_form) {
    throw std::logic_error(
        "a pipeline needs losses of the same parts and dtypes in all passes with gradients: the "
        "other stages know those of the first pass");
  }
  std::vector<at::Tensor> values;
  for (const auto& [name, value] : loss.parts()) values.push_back(value);
  call_at_backward(values, synchronize);
  return std::move(loss).with_values(values);
}

// What goes on in the place of a loss that the last stage computes: its backward pass is this
// stage's turn to do one.
Loss Pipeline::Impl::loss_elsewhere(bool synchronize) {
  if (!loss_form) loss_form.emplace(letters->receive(last_stage(), kLosses).text);
  std::vector<at::Tensor> values = loss_form->zeros();
  // Of a loss of several parts one may be differentiated alone.
  bool is_differentiable = false;
  for (const at::Tensor& value : values) {
    if (!value.is_floating_point()) continue;
    value.requires_grad_(true);
    is_differentiable = true;
  }
  if (!is_differentiable) {
    throw std::logic_error("a loss without a part in floating point has no backward pass");
  }
  call_at_backward(values, synchronize);
  return loss_form->with(values);
}

// The last stage's, on all.
Loss Pipeline::Impl::measured(std::optional<Loss> loss) {
  const at::NoGradGuard no_grad;
  const LossForm form(ranks.broadcast(loss ? LossForm(*loss).text() : std::string(), last_stage()));
  std::vector<at::Tensor> values = form.zeros();
  const at::Tensor sent =
      tensors::zeros({static_cast<int64_t>(values.size())}, at::TensorOptions().dtype(at::kDouble));
  for (std::size_t i = 0; loss && i < values.size(); ++i) {
    sent.select(0, static_cast<int64_t>(i)).copy_(loss->parts()[i].second.reshape({}));
  }
  ranks.broadcast(sent, last_stage());
  letters->confirm();
  // The last stage may end its worker behind an evaluation: answers to the others' letters, which
  // its agent's threads send, come before that.
  ranks.barrier();
  if (loss) return *std::move(loss);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i].copy_(sent.select(0, static_cast<int64_t>(i)));
  }
  return form.with(values);
}

}  // namespace phalanx
