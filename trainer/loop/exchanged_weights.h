// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

namespace phalanx {

/// Has other weights in the model's place for the length of a scope. `exchange` puts them there,
/// and, called once more, the model's own back; empty: the model keeps its own.
class ExchangedWeights {
 public:
  explicit ExchangedWeights(std::function<void()> exchange) : exchange_(std::move(exchange)) {
    if (exchange_) exchange_();
  }
  ExchangedWeights(const ExchangedWeights&) = delete;
  ExchangedWeights& operator=(const ExchangedWeights&) = delete;
  ~ExchangedWeights() {
    try {
      if (exchange_) exchange_();
    } catch (...) {  // A device that does not answer: the error that ends the run says more.
    }
  }

  /// Calls `action` with the model's own weights in their place.
  void with_own(const std::function<void()>& action) const {
    const ExchangedWeights own(exchange_);
    action();
  }

 private:
  std::function<void()> exchange_;
};

}  // namespace phalanx
