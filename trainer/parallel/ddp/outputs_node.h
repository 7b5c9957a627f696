// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/custom_class.h>

#include <memory>
#include <vector>

namespace c10d {
class Logger;
}

namespace phalanx {

class OrderedReducer;

/// The reducer, and whether a static graph's first backward has been told to reduce at its end.
/// Shared with autograd's graph, which may outlive the wrapper.
struct SharedReducer : torch::CustomClassHolder {
  std::shared_ptr<OrderedReducer> reducer;
  std::shared_ptr<c10d::Logger> logger;  ///< The reducer asks it if other parameters are unused.
  bool static_graph = false;
  bool delay_enqueued = false;
};

/// Joins the outputs of a pass that need a gradient into one node of the graph, in place, so that
/// those the loss does not use reach the reducer too, as undefined gradients (Python's _DDPSink).
void join_outputs(std::vector<at::Tensor>& outputs,
                  const c10::intrusive_ptr<SharedReducer>& shared);

}  // namespace phalanx
