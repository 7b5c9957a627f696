// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trainer/parallel/ddp/uneven_inputs.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

class OrderedReducer;

/// What ranks tell each other where some have no inputs left while others still run passes
/// (torch/distributed/algorithms/join.py, and DistributedDataParallel's side of it). In each pass
/// all ranks call the same of these, in this order: `has_inputs` or `ranks_with_inputs`;
/// `common_rank` where buffers are broadcast; `synchronizes`.
class UnevenPasses {
 public:
  UnevenPasses(OrderedReducer& reducer, Ranks ranks, at::Device device, const UnevenInputs& inputs);
  UnevenPasses(const UnevenPasses&) = delete;
  UnevenPasses& operator=(const UnevenPasses&) = delete;
  ~UnevenPasses();

  /// This rank runs a pass: the reducer learns how many do. Throws InputsRanOut.
  void has_inputs();
  /// It has no inputs left: the number of ranks that run a pass. Throws InputsRanOut where there
  /// are some, and all are to throw then.
  int64_t ranks_with_inputs();
  /// The largest of the ranks with `is_candidate`; there is one.
  int64_t common_rank(bool is_candidate) const;
  /// Whether the pass that others run reduces gradients: `does` where this rank runs one.
  bool synchronizes(bool does) const;

 private:
  at::Tensor number(int64_t value) const;
  int64_t sum(int64_t value) const;

  OrderedReducer& reducer_;
  Ranks ranks_;
  at::Device device_;
  UnevenInputs inputs_;
};

}  // namespace phalanx
