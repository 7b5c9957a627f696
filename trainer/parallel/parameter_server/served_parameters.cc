// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/parameter_server/served_parameters.h"

#include <ATen/core/grad_mode.h>
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

Push push_in(const rpc::Values& values, size_t parameters) {
  std::istringstream text(values.text);
  Push push;
  std::string has;
  text >> push.rank >> push.round >> has;
  size_t given = 0;
  for (const char each : has) given += each == '1' ? 1 : 0;
  if (has.size() != parameters || given != values.tensors.size()) {
    throw std::invalid_argument(
        fmt::format("gradients of {} parameters were pushed, of {} here", has.size(), parameters));
  }
  auto next = values.tensors.begin();
  for (const char each : has) push.gradients.push_back(each == '1' ? *next++ : at::Tensor());
  return push;
}

void add_to(at::Tensor& sum, const at::Tensor& gradient, int64_t ranks) {
  if (!gradient.defined()) return;
  // Divided first, as DDP does.
  const at::Tensor share = gradient.div(ranks);
  if (sum.defined()) {
    sum.add_(share);
  } else {
    sum = share;
  }
}

}  // namespace

rpc::Values pushed(int64_t rank, int64_t round, const Gradients& gradients) {
  rpc::Values values;
  std::string has;
  for (const at::Tensor& gradient : gradients) {
    has += gradient.defined() ? '1' : '0';
    if (gradient.defined()) values.tensors.push_back(gradient.detach().contiguous());
  }
  values.text = fmt::format("{} {} {}", rank, round, has);
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

bool ServedParameters::is_whole(int64_t round) const {
  const auto found = rounds_.find(round);
  return found != rounds_.end() && static_cast<int64_t>(found->second.size()) == rules_.ranks;
}

bool ServedParameters::wait(int64_t round, std::chrono::milliseconds patience) const {
  if (!rules_.synchronous) return true;
  std::unique_lock lock(mutex_);
  return came_.wait_for(lock, patience, [&] { return is_whole(round); });
}

std::vector<int64_t> ServedParameters::missing(int64_t round) const {
  const std::scoped_lock lock(mutex_);
  std::vector<int64_t> ranks;
  const auto found = rounds_.find(round);
  for (int64_t rank = 0; rank < rules_.ranks; ++rank) {
    if (found == rounds_.end() || !found->second.contains(rank)) ranks.push_back(rank);
  }
  return ranks;
}

void ServedParameters::add(Gradients gradients) {
  for (size_t i = 0; i < gradients.size(); ++i) add_to(sums_[i], gradients[i], rules_.ranks);
}

Gradients ServedParameters::take(int64_t round) {
  const at::NoGradGuard no_grad;
  const std::scoped_lock lock(mutex_);
  if (rules_.synchronous) {
    for (auto& [rank, gradients] : rounds_.at(round)) add(std::move(gradients));
    rounds_.erase(round);
  }
  Gradients means(parameters_.size());
  means.swap(sums_);
  return means;
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
    Push push = push_in(values, parameters_.size());
    const std::scoped_lock lock(mutex_);
    if (rules_.synchronous) {
      rounds_[push.round][push.rank] = std::move(push.gradients);
      came_.notify_all();
    } else {
      add(std::move(push.gradients));
    }
    return rpc::Values{};
  });
}

}  // namespace phalanx::parameter_server
