// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <vector>

namespace phalanx {

/// c10d's reducer, told in which order to reduce, and when.
///
/// It makes its buckets anew after the first backward, in the order in which gradients came. A
/// start that goes on with a run has to begin with those buckets, for the same sums.
class OrderedReducer : public c10d::Reducer {
 public:
  using Reducer::Reducer;

  /// The parameters in that order; empty: not known.
  const std::vector<int64_t>& order() const {
    return order_.empty() ? rebuilt_param_indices_ : order_;
  }

  /// Makes the buckets anew, once the order is known.
  void use_order();

  /// Before the first forward pass.
  void follow(const std::vector<size_t>& order);

  /// Lets gradients stay this rank's own, until the next `prepare_for_backward`.
  void expect_nothing();

  /// Reduces the gradients that the parameters have, whichever passes left them: mean gradients
  /// stay what they are. At the end of a backward pass, which autograd then has wait for it.
  void reduce_all();

  /// Takes part in the reductions of a pass that only other ranks run, with zeros. `finds_unused`:
  /// they also tell each other which parameters were used.
  void reduce_zeros(bool finds_unused);

  /// Divides by the number of ranks again, whatever `set_forward_pass_work_handle` has said.
  void forget_participants() { forwardPassWorkHandle_ = {}; }

  /// The places of the parameters that have no gradient.
  std::vector<size_t> without_gradient() const;

 private:
  std::vector<int64_t> order_;
};

}  // namespace phalanx
