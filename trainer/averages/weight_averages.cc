// SPDX-License-Identifier: Apache-2.0
#include "trainer/averages/weight_averages.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/base/json_cause.h"
#include "trainer/base/user_error.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

constexpr const char* kUpdates = "updates";
constexpr const char* kMethod = "method";

const char* name_of(AverageMethod method) {
  return method == AverageMethod::exponential ? "ema" : "swa";
}

}  // namespace

WeightAverages::WeightAverages(AverageMethod method, double decay,
                               std::vector<ShardedTensorView> weights)
    : method_(method), decay_(decay), weights_(std::move(weights)), averages_(weights_) {
  for (ShardedTensorView& average : averages_) {
    average.local = tensors::zeros(average.local.sizes(), average.local.options());
  }
}

void WeightAverages::update() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const at::Tensor& weight = weights_[i].local;
    const at::Tensor& average = averages_[i].local;
    if (updates_ == 0) {
      average.copy_(weight);
    } else if (method_ == AverageMethod::exponential) {
      average.lerp_(weight, 1 - decay_);
    } else {
      average.add_(weight.sub(average).div_(static_cast<double>(updates_ + 1)));
    }
  }
  ++updates_;
}

void WeightAverages::exchange() {
  if (updates_ == 0) return;
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const at::Tensor kept = weights_[i].local.clone();
    weights_[i].local.copy_(averages_[i].local);
    averages_[i].local.copy_(kept);
  }
}

std::string WeightAverages::json() const {
  return nlohmann::ordered_json{{kMethod, name_of(method_)}, {kUpdates, updates_}}.dump();
}

// The other method's number of updates would weigh the next one wrongly.
void WeightAverages::restore(std::string_view json) {
  const int64_t updates = updates_in(json);
  const auto kept = nlohmann::json::parse(json);
  updates_ = kept.value(kMethod, name_of(method_)) == name_of(method_) ? updates : 0;
}

int64_t updates_in(std::string_view json) {
  try {
    const auto updates = nlohmann::json::parse(json).at(kUpdates).get<int64_t>();
    if (updates >= 0) return updates;
    throw UserError("the checkpoint's averages have a negative number of updates");
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format("the state of averages cannot be read: {}", json_cause(error)));
  }
}

}  // namespace phalanx
