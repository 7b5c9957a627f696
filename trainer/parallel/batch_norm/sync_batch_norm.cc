// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/batch_norm/sync_batch_norm.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "trainer/parallel/batch_norm/common_statistics.h"
#include "trainer/ranks/ranks.h"

namespace phalanx::batch_norm {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Statistics and gradients are summed in at least float32.
at::ScalarType type_of_sums(const at::Tensor& input) {
  return input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// [channels] as it is laid over [samples, channels, ...].
at::Tensor over(const at::Tensor& input, const at::Tensor& of_channels) {
  std::vector<int64_t> sizes(static_cast<std::size_t>(input.dim()), 1);
  sizes[1] = -1;
  return of_channels.view(sizes);
}

// What one call's forward and backward pass have in common. Shared with autograd's graph.
struct Call : torch::CustomClassHolder {
  Call(const Ranks& with, bool counts_here) : ranks(with), counts(counts_here) {}

  Ranks ranks;
  bool counts;
};

// `scale` and `shift` are what the whole is: input * scale + shift.
struct Normalize : torch::autograd::Function<Normalize> {
  static at::Tensor forward(AutogradContext* context, const c10::intrusive_ptr<Call>& call,
                            const at::Tensor& input, const std::optional<at::Tensor>& weight,
                            const std::optional<at::Tensor>& bias,
                            const CommonStatistics& statistics, double eps) {
    const at::ScalarType type = type_of_sums(input);
    const at::Tensor mean = statistics.mean.to(type);
    const at::Tensor inverse = (statistics.variance + eps).rsqrt().to(type);
    const at::Tensor scale = weight ? inverse * weight->to(type) : inverse;
    const at::Tensor shift = bias ? bias->to(type) - mean * scale : -mean * scale;
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    if (bias) context->saved_data["type_of_bias"] = bias->scalar_type();
    context->save_for_backward(
        {input, weight.value_or(at::Tensor()), mean, inverse, statistics.count});
    return at::addcmul(over(input, shift), input.to(type), over(input, scale))
        .to(input.scalar_type());
  }

  // As torch.nn.SyncBatchNorm's (torch/nn/modules/_functions.py).
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(),
                "synchronized batch normalization: its backward pass cannot be differentiated "
                "(create_graph, gradient penalties); leave out sync_batchnorm");
    const auto call =
        c10::static_intrusive_pointer_cast<Call>(context->saved_data["call"].toCapsule());
    const auto saved = context->get_saved_variables();
    const at::Tensor& input = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& inverse = saved[3];
    const at::ScalarType type = type_of_sums(input);
    const at::Tensor gradient = gradients.front().to(type);
    const at::Tensor distance = input.to(type) - over(input, saved[2]);
    const std::vector<int64_t> dimensions = dimensions_of_values(input);
    const at::Tensor sum = gradient.sum(dimensions);
    const at::Tensor sum_by_distance = (gradient * distance).sum(dimensions);

    variable_list results(6);
    if (weight.defined()) results[2] = (sum_by_distance * inverse).to(weight.scalar_type());
    if (const auto type_of_bias = context->saved_data.find("type_of_bias");
        type_of_bias != context->saved_data.end()) {
      results[3] = sum.to(type_of_bias->second.toScalarType());
    }
    if (!context->needs_input_grad(0)) return results;
    at::Tensor sums = at::cat({sum, sum_by_distance}).to(at::kDouble);
    if (!call->counts) sums.zero_();
    call->ranks.all_reduce(sums);
    const at::Tensor scale = weight.defined() ? inverse * weight.to(type) : inverse;
    at::Tensor of_input = gradient;
    if (call->counts) {
      sums = (sums / saved[4]).to(type);
      const auto parts = sums.chunk(2);
      of_input =
          gradient - over(input, parts[0]) - distance * over(input, inverse.square() * parts[1]);
    }
    results[1] = (of_input * over(input, scale)).to(input.scalar_type());
    return results;
  }
};

void require_channels(const at::Tensor& tensor, const char* what, int64_t channels) {
  TORCH_CHECK(!tensor.defined() || tensor.numel() == channels, what, " should contain ", channels,
              " elements not ", tensor.defined() ? tensor.numel() : 0);
}

void move_towards(const at::Tensor& running, const at::Tensor& value, double momentum) {
  if (!running.defined()) return;
  running.copy_(running.to(at::kDouble) * (1 - momentum) + value * momentum);
}

std::optional<at::Tensor> if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? std::make_optional(tensor) : std::nullopt;
}

}  // namespace

at::Tensor sync_batch_norm(const at::Tensor& input, const Normalization& normalization,
                           const Ranks& ranks, bool counts) {
  TORCH_CHECK(input.dim() >= 2, "batch_norm expects an input of at least 2 dimensions, got ",
              input.dim());
  const int64_t channels = input.size(1);
  require_channels(normalization.weight, "weight", channels);
  require_channels(normalization.bias, "bias", channels);
  require_channels(normalization.running_mean, "running_mean", channels);
  require_channels(normalization.running_var, "running_var", channels);
  CommonStatistics statistics;
  {
    const at::NoGradGuard no_grad;
    statistics = common_statistics(input.detach().to(type_of_sums(input)),
                                   counts ? values_a_channel(input) : 0, ranks);
    if (statistics.has_values) {
      move_towards(normalization.running_mean, statistics.mean, normalization.momentum);
      move_towards(normalization.running_var, statistics.unbiased, normalization.momentum);
    }
  }
  return Normalize::apply(c10::make_intrusive<Call>(ranks, counts), input,
                          if_defined(normalization.weight), if_defined(normalization.bias),
                          std::move(statistics), normalization.eps);
}

}  // namespace phalanx::batch_norm
