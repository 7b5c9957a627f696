// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/gathered_loss.h"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace phalanx {
namespace {

// Weighed in single precision at least.
at::Tensor at_least_single(const at::Tensor& value) {
  return at::isReducedFloatingType(value.scalar_type()) ? value.to(at::kFloat) : value;
}

// The share of each part in the mean; alike where none has any tokens, and all losses are 0.
std::vector<double> shares_of(std::span<const std::unique_ptr<Batch>> parts) {
  int64_t tokens = 0;
  for (const auto& part : parts) tokens += part->tokens;
  std::vector<double> shares;
  for (const auto& part : parts) {
    shares.push_back(tokens == 0 ? 1.0 / static_cast<double>(parts.size())
                                 : static_cast<double>(part->tokens) / static_cast<double>(tokens));
  }
  return shares;
}

void require_same_names(const Loss& first, const Loss& other) {
  bool are_alike = first.parts().size() == other.parts().size();
  for (size_t i = 0; are_alike && i < first.parts().size(); ++i) {
    are_alike = first.parts()[i].first == other.parts()[i].first;
  }
  if (are_alike) return;
  throw std::logic_error(
      "the task's losses have not the same parts, in the same order, on every replica");
}

void take_metrics_of(Loss& taker, Loss& giver, at::Device device) {
  for (FedMetric& fed : giver.take_metrics()) {
    for (at::Tensor& input : fed.inputs) {
      if (input.defined()) input = input.to(device);
    }
    taker.metric(std::move(fed.name), std::move(fed.inputs));
  }
}

}  // namespace

Loss gathered(std::vector<std::optional<Loss>> losses,
              std::span<const std::unique_ptr<Batch>> parts, at::Device device) {
  if (losses.size() == 1) return std::move(*losses.front());
  const std::vector<double> shares = shares_of(parts);
  const Loss& first = *losses.front();
  for (const auto& loss : losses) require_same_names(first, *loss);
  Loss::Parts sums;
  for (size_t part = 0; part < first.parts().size(); ++part) {
    at::Tensor sum;
    for (size_t i = 0; i < losses.size(); ++i) {
      // Without tokens it may be NaN, and 0 times that is NaN.
      if (shares[i] == 0) continue;
      const at::Tensor value =
          at_least_single(losses[i]->parts()[part].second).to(device).mul(shares[i]);
      sum = sum.defined() ? sum.add(value) : value;
    }
    sums.emplace_back(first.parts()[part].first, sum);
  }
  Loss all(std::move(sums));
  for (size_t i = 0; i < losses.size(); ++i) {
    if (shares[i] > 0) take_metrics_of(all, *losses[i], device);
  }
  return all;
}

}  // namespace phalanx
