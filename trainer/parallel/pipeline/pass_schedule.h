// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <string>

#include "trainer/parallel/pipeline/letters.h"
#include "trainer/parallel/pipeline/open_passes.h"

namespace phalanx::pipeline {

/// The letters of a pass: what a stage gives the next one, and what comes back.
std::string activation_key(int64_t pass);
std::string gradient_key(int64_t pass);

/// What goes back where a pass is left without its backward pass.
rpc::Values no_gradient();

/// A forward pass whose backward pass is to come, on a stage before the last one.
struct WaitingPass {
  int64_t number = 0;
  at::Tensor output = {};      ///< Without elements once the pass is left out.
  bool owes_gradient = false;  ///< The stage before waits for one.
  bool is_called = false;      ///< Its backward pass has been called here.
  bool is_left_out = false;    ///< It will not be called here.
};

/// When a stage before the last one does its backward passes (1F1B): a call of one is the turn to
/// do the oldest, delayed until the stages behind it can have done theirs.
class PassSchedule {
 public:
  /// `behind`: how many stages come behind this one. `letters` must outlive it.
  PassSchedule(Letters& letters, int64_t stage, int64_t behind)
      : letters_(letters), stage_(stage), behind_(behind) {}

  /// What the stage has sent on in a pass with gradients.
  void add(WaitingPass pass);

  /// Gives up the activations of passes that will have no backward pass here. `open`: this stage's.
  void release_left_out(OpenPasses& open);

  /// The backward pass of `pass` is called: does those whose turn it is, or all (`all`), which
  /// comes before gradients are used. Throws WorkerLost, and std::logic_error for a pass that has
  /// its backward pass here and not on the last stage, or there and not here.
  void backward(int64_t pass, bool all, OpenPasses& open);

  /// The most passes that have waited at a time.
  int64_t most_waiting() const { return most_waiting_; }

 private:
  void do_oldest();

  Letters& letters_;
  int64_t stage_;
  int64_t behind_;
  std::deque<WaitingPass> waiting_;
  int64_t most_waiting_ = 0;
};

}  // namespace phalanx::pipeline
