// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/power_sgd/layers.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <utility>

#include "trainer/parallel/ddp/bucket_mean.h"
#include "trainer/parallel/ddp/power_sgd/orthogonalize.h"

namespace phalanx::power_sgd {
namespace {

at::Tensor flat(const at::Tensor& tensor) { return tensor.view({-1}); }

}  // namespace

Layers::Layers(const LayerOptions& options, Ranks ranks,
               const std::vector<NamedParameter>& parameters, CommHook::Tell tell)
    : options_(options),
      ranks_(std::move(ranks)),
      tell_(std::move(tell)),
      counts_(count_options(options)),
      layers_(parameters.size()),
      shared_(counts_, ranks_),
      errors_(ranks_) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i].tensor;
    Layer& layer = layers_[i];
    layer_of_[parameter.unsafeGetTensorImpl()] = &layer;
    layer.rows = parameter.dim() == 0 ? 1 : parameter.size(0);
    layer.columns = layer.rows == 0 ? 0 : parameter.numel() / layer.rows;
    layer.rank = std::min({layer.rows, layer.columns, options_.matrix_approximation_rank});
    const int64_t size_of_pair = (layer.rows + layer.columns) * layer.rank;
    layer.is_compressed = static_cast<double>(size_of_pair) * options_.min_compression_rate <
                          static_cast<double>(parameter.numel());
    if (layer.is_compressed && options_.warm_start) {
      layer.q = at::zeros({layer.columns, layer.rank}, parameter.options().requires_grad(false));
      shared_.add("q." + parameters[i].name, layer.q);
    }
    if (options_.use_error_feedback) {
      layer.error = at::zeros({parameter.numel()}, parameter.options().requires_grad(false));
      errors_.add(parameters[i].name, layer.error);
    }
  }
}

std::vector<NamedStateful> Layers::kept_states() {
  std::vector<NamedStateful> states{{.name = "powersgd", .state = &shared_}};
  if (options_.use_error_feedback) {
    states.push_back({.name = fmt::format("powersgd_errors_of_{}_ranks", ranks_.world_size()),
                      .state = &errors_});
  }
  return states;
}

Layers::Future Layers::run(c10d::GradBucket& bucket) {
  const at::NoGradGuard no_grad;
  if (!counts_.compresses()) {
    if (bucket.isLast()) counts_.end_iteration();
    return start_bucket_mean(bucket.getBuffer(), ranks_);
  }
  if (bucket.getIndex() == 0) {
    buckets_.clear();  // A step that has failed leaves some.
    errors_.begin();
  }
  Bucket& one = buckets_.emplace_back();
  one.buffer = bucket.getBuffer();
  one.gradients = bucket.getGradients();
  for (const at::Tensor& parameter : bucket.getParameters()) {
    one.layers.push_back(layer_of_.at(parameter.unsafeGetTensorImpl()));
  }
  one.reduced = future_of(one.buffer);
  const Future reduced = one.reduced;
  if (options_.use_error_feedback) add_errors(one);
  divide_gradients(one);
  make_qs(one);
  start(one);
  if (bucket.isLast()) finish();
  return reduced;
}

void Layers::add_errors(Bucket& bucket) {
  for (std::size_t i = 0; i < bucket.gradients.size(); ++i) {
    flat(bucket.gradients[i]).add_(bucket.layers[i]->error);
  }
  bucket.before = bucket.buffer.clone();
}

// Into those that are reduced as they are and stacks of those that are compressed, one for each
// shape, or for each gradient. Qs are drawn, and summed, shape by shape in either case.
void Layers::divide_gradients(Bucket& bucket) {
  std::vector<Stack> shapes;
  for (std::size_t i = 0; i < bucket.gradients.size(); ++i) {
    Layer& layer = *bucket.layers[i];
    const int64_t elements = layer.rows * layer.columns;
    if (!layer.is_compressed) {
      bucket.plain.push_back(flat(bucket.gradients[i]));
      counts_.count(elements, elements);
      continue;
    }
    counts_.count(elements, (layer.rows + layer.columns) * layer.rank);
    const auto same_shape = std::ranges::find_if(shapes, [&](const Stack& stack) {
      const Layer& other = *stack.layers.front();
      return other.rows == layer.rows && other.columns == layer.columns;
    });
    Stack& stack = same_shape == shapes.end() ? shapes.emplace_back() : *same_shape;
    stack.gradients.push_back(bucket.gradients[i].view({layer.rows, layer.columns}));
    stack.layers.push_back(&layer);
  }
  bucket.stacks = stacks_of(shapes);
}

std::vector<Layers::Stack> Layers::stacks_of(const std::vector<Stack>& shapes) const {
  std::vector<Stack> stacks;
  for (const Stack& shape : shapes) {
    if (options_.batch_tensors_with_same_shape && shape.gradients.size() > 1) {
      Stack& stack = stacks.emplace_back(shape);
      stack.matrices = at::stack(stack.gradients);
      continue;
    }
    for (std::size_t i = 0; i < shape.gradients.size(); ++i) {
      stacks.push_back({.gradients = {shape.gradients[i]},
                        .layers = {shape.layers[i]},
                        .matrices = shape.gradients[i].unsqueeze(0)});
    }
  }
  return stacks;
}

void Layers::make_qs(Bucket& bucket) {
  int64_t p_size = 0;
  int64_t q_size = 0;
  const auto sizes = [](const Stack& stack) {
    const Layer& layer = *stack.layers.front();
    const auto count = static_cast<int64_t>(stack.layers.size());
    return std::pair(count * layer.rows * layer.rank, count * layer.columns * layer.rank);
  };
  for (const Stack& stack : bucket.stacks) {
    p_size += sizes(stack).first;
    q_size += sizes(stack).second;
  }
  bucket.p = at::empty({p_size}, bucket.buffer.options());
  bucket.q = at::empty({q_size}, bucket.buffer.options());
  at::Generator random;
  if (!counts_.is_warm()) random = counts_.next_generator();
  int64_t p_begin = 0;
  int64_t q_begin = 0;
  for (Stack& stack : bucket.stacks) {
    const Layer& layer = *stack.layers.front();
    const auto [p_elements, q_elements] = sizes(stack);
    stack.p = bucket.p.narrow(0, p_begin, p_elements).view({-1, layer.rows, layer.rank});
    stack.q = bucket.q.narrow(0, q_begin, q_elements).view({-1, layer.columns, layer.rank});
    p_begin += p_elements;
    q_begin += q_elements;
    if (random.defined()) {
      stack.q.copy_(at::randn(stack.q.sizes(), random, stack.q.options().device(at::kCPU)));
    } else {
      for (std::size_t i = 0; i < stack.layers.size(); ++i) {
        stack.q.select(0, static_cast<int64_t>(i)).copy_(stack.layers[i]->q);
      }
    }
    orthogonalize(stack.q, options_.orthogonalization_epsilon);
  }
}

Pending Layers::start_sum(const at::Tensor& values) const {
  return values.numel() == 0 ? Pending() : ranks_.start_all_reduce(values);
}

void Layers::start(Bucket& bucket) {
  if (!bucket.plain.empty()) {
    bucket.plain_values = at::cat(bucket.plain);
    bucket.plain_sum = start_sum(bucket.plain_values);
  }
  for (Stack& stack : bucket.stacks) at::bmm_out(stack.p, stack.matrices, stack.q);
  bucket.p_sum = start_sum(bucket.p);
}

// Orthogonalized, the sum of Ps is as good as their mean.
void Layers::compute_qs(Bucket& bucket) {
  bucket.plain_sum.wait();
  if (bucket.plain_values.defined()) bucket.plain_values.div_(ranks_.world_size());
  int64_t begin = 0;
  for (const at::Tensor& gradient : bucket.plain) {
    gradient.copy_(bucket.plain_values.narrow(0, begin, gradient.numel()));
    begin += gradient.numel();
  }
  bucket.p_sum.wait();
  for (Stack& stack : bucket.stacks) {
    orthogonalize(stack.p, options_.orthogonalization_epsilon);
    at::bmm_out(stack.q, stack.matrices.transpose(1, 2), stack.p);
  }
  bucket.q_sum = start_sum(bucket.q);
}

void Layers::decompress(Bucket& bucket) {
  bucket.q_sum.wait();
  bucket.q.div_(ranks_.world_size());
  for (Stack& stack : bucket.stacks) {
    at::bmm_out(stack.matrices, stack.p, stack.q.transpose(1, 2));
    for (std::size_t i = 0; i < stack.layers.size(); ++i) {
      const auto place = static_cast<int64_t>(i);
      if (stack.layers.size() > 1) stack.gradients[i].copy_(stack.matrices.select(0, place));
      if (options_.warm_start) stack.layers[i]->q.copy_(stack.q.select(0, place));
    }
  }
  if (!options_.use_error_feedback) return;
  int64_t begin = 0;
  for (std::size_t i = 0; i < bucket.gradients.size(); ++i) {
    const at::Tensor gradient = flat(bucket.gradients[i]);
    at::sub_out(bucket.layers[i]->error, bucket.before.narrow(0, begin, gradient.numel()),
                gradient);
    begin += gradient.numel();
  }
}

void Layers::finish() {
  for (Bucket& bucket : buckets_) compute_qs(bucket);
  for (Bucket& bucket : buckets_) {
    decompress(bucket);
    bucket.reduced->markCompleted(bucket.buffer);
  }
  buckets_.clear();
  counts_.end_compressed(tell_);
}

}  // namespace phalanx::power_sgd
