// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace phalanx {

class OrderedReducer;

/// Decides how the gradients of each backward pass are reduced. As they come, where it belongs to
/// the one forward pass whose graph is there: that overlaps with computing. All together at its
/// end, where passes come in another order: two forward passes before a backward one, a second
/// backward pass of a graph. Both begin the same collectives, so that ranks may come to other
/// decisions.
class BackwardPasses : public std::enable_shared_from_this<BackwardPasses> {
 public:
  struct Rules {
    bool finds_unused = false;       ///< Parameters may go without a gradient.
    bool is_static = false;          ///< Every step has one forward and one backward pass.
    std::vector<std::string> names;  ///< Names of the reducer's parameters.
  };

  BackwardPasses(std::shared_ptr<OrderedReducer> reducer, Rules rules);

  /// A forward pass with gradients has ended. `synchronize`: backward passes reduce from now on.
  /// Returns whether the reducer is to be prepared for gradients that come one by one.
  bool begin(bool synchronize);
  /// The results of that pass: their gradients begin a backward pass.
  void watch(const std::vector<at::Tensor>& outputs);

  /// Backward passes so far.
  int64_t count() const { return count_; }

 private:
  // Lives as long as the graph of the pass.
  struct Pass {
    bool is_over = false;  // a backward pass has taken its graph
  };

  void on_gradient(const std::shared_ptr<Pass>& pass);
  void reduce();

  std::shared_ptr<OrderedReducer> reducer_;
  Rules rules_;
  std::vector<std::weak_ptr<Pass>> passes_;
  std::shared_ptr<Pass> newest_;  ///< Between `begin` and `watch`.
  std::weak_ptr<Pass> prepared_;  ///< The one whose gradients are reduced as they come.
  bool synchronize_ = true;
  int task_ = -1;  ///< Autograd's number of the backward pass that has begun last.
  int64_t count_ = 0;
};

}  // namespace phalanx
