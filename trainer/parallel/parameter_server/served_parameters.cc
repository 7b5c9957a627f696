// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/parameter_server/served_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

namespace phalanx::parameter_server {
namespace {

struct Push {
  int64_t rank = 0;
  int64_t round = 0;
  Gradients gradients;
};

// How a gradient travels.
constexpr char kNone = '0';
constexpr char kDense = '1';
constexpr char kSparse = '2';  // as its indices and values

size_t tensors_of(char kind) { return kind == kNone ? 0 : kind == kDense ? 1 : 2; }

Push push_in(const rpc::Values& values, const std::vector<at::Tensor>& parameters) {
  std::istringstream text(values.text);
  Push push;
  std::string kinds;
  text >> push.rank >> push.round >> kinds;
  size_t given = 0;
  for (const char kind : kinds) given += tensors_of(kind);
  if (kinds.size() != parameters.size() || given != values.tensors.size()) {
    throw std::invalid_argument(fmt::format("gradients of {} parameters were pushed, of {} here",
                                            kinds.size(), parameters.size()));
  }
  auto next = values.tensors.begin();
  for (size_t i = 0; i < kinds.size(); ++i) {
    at::Tensor& gradient = push.gradients.emplace_back();
    if (kinds[i] == kDense) gradient = *next++;
    if (kinds[i] != kSparse) continue;
    const at::Tensor& indices = *next++;
    gradient = at::sparse_coo_tensor(indices, *next++, parameters[i].sizes());
  }
  return push;
}

void add_to(at::Tensor& sum, const at::Tensor& gradient, int64_t ranks) {
  if (!gradient.defined()) return;
  // Divided first, as DDP does.
  const at::Tensor share = gradient.div(ranks);
  if (sum.defined()) {
    sum.add_(share);
  } else {
    sum = share.is_sparse() ? share.to_dense() : share;
  }
}

}  // namespace

rpc::Values pushed(int64_t rank, int64_t round, const Gradients& gradients) {
  rpc::Values values;
  std::string kinds;
  for (const at::Tensor& gradient : gradients) {
    if (!gradient.defined()) {
      kinds += kNone;
    } else if (gradient.is_sparse()) {
      kinds += kSparse;
      const at::Tensor rows = gradient.detach().coalesce();
      values.tensors.push_back(rows.indices());
      values.tensors.push_back(rows.values());
    } else {
      kinds += kDense;
      values.tensors.push_back(gradient.detach().contiguous());
    }
  }
  values.text = fmt::format("{} {} {}", rank, round, kinds);
  return values;
}

void ServedParameters::publish(int64_t version) {
  const at::NoGradGuard no_grad;
  std::vector<rpc::Promise> answered;
  rpc::Values values;
  {
    const std::scoped_lock lock(mutex_);
    published_ = version;
    answer_.clear();
    for (const at::Tensor& parameter : parameters_) {
      // Without rounds the optimizer moves them while they are pulled.
      answer_.push_back(rules_.synchronous ? parameter : parameter.clone());
    }
    // A forward pass on this rank changes them at any time.
    for (const at::Tensor& buffer : buffers_) answer_.push_back(buffer.clone());
    std::erase_if(waiting_, [&](const auto& pull) {
      if (!is_there(pull.first)) return false;
      answered.push_back(pull.second);
      return true;
    });
    values.tensors = answer_;
  }
  for (const rpc::Promise& promise : answered) promise.set(values);
}

void ServedParameters::add(const Gradients& gradients) {
  for (size_t i = 0; i < gradients.size(); ++i) add_to(sums_[i], gradients[i], rules_.ranks);
}

Gradients ServedParameters::take(int64_t round) {
  const at::NoGradGuard no_grad;
  const std::vector<Gradients> of_ranks = rounds_.take(round);
  const std::scoped_lock lock(mutex_);
  for (const Gradients& gradients : of_ranks) add(gradients);
  Gradients means(parameters_.size());
  means.swap(sums_);
  return means;
}

void ServedParameters::drop() {
  const std::scoped_lock lock(mutex_);
  for (at::Tensor& sum : sums_) sum.reset();
}

rpc::Function ServedParameters::pull() {
  return rpc::function_of([this](const rpc::Values& asked) -> rpc::Future {
    const int64_t version = std::stoll(asked.text);
    const std::scoped_lock lock(mutex_);
    if (is_there(version)) return rpc::Future(rpc::Values{.tensors = answer_});
    return waiting_.emplace_back(version, rpc::Promise()).second.future();
  });
}

rpc::Function ServedParameters::push() {
  return rpc::function_of([this](const rpc::Values& values) {
    const at::NoGradGuard no_grad;
    Push push = push_in(values, parameters_);
    if (rules_.synchronous) {
      rounds_.put(push.round, push.rank, std::move(push.gradients));
    } else {
      const std::scoped_lock lock(mutex_);
      add(push.gradients);
    }
    return rpc::Values{};
  });
}

}  // namespace phalanx::parameter_server
