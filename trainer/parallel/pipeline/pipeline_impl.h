// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/loss.h"
#include "trainer/parallel/pipeline/held_parameters.h"
#include "trainer/parallel/pipeline/letters.h"
#include "trainer/parallel/pipeline/loss_form.h"
#include "trainer/parallel/pipeline/open_passes.h"
#include "trainer/parallel/pipeline/pass_schedule.h"
#include "trainer/parallel/pipeline/pipeline.h"
#include "trainer/parallel/pipeline/shared_gradients.h"
#include "trainer/parallel/pipeline/stage_hook.h"
#include "trainer/parallel/pipeline/stages.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// What a Pipeline and the graphs of its passes share.
struct Pipeline::Impl : std::enable_shared_from_this<Pipeline::Impl> {
  /// Gives up the parameters of other stages.
  Impl(torch::nn::Module& module, const Ranks& given);

  Ranks ranks;
  pipeline::Stages stages;
  std::vector<pipeline::HeldParameter> parameters;
  pipeline::SharedGradients shared;
  std::vector<std::pair<std::string, at::Tensor>> buffers;
  std::vector<uint32_t> buffer_versions;  ///< Before a step's first pass; empty: between steps.
  std::unique_ptr<pipeline::Letters> letters;
  pipeline::PassSchedule schedule;  ///< For a stage before the last one.
  pipeline::OpenPasses open;
  std::set<int64_t> owed;  ///< On the last stage: open passes whose gradient another waits for.
  std::shared_ptr<pipeline::StagePass> pass;
  std::optional<pipeline::LossForm> loss_form;  ///< In passes with gradients; none: not known yet.
  int64_t number = 0;                           ///< Forward passes so far; the present one's.
  int64_t backward_passes = 0;
  bool synchronizes = false;   ///< Whether the newest pass with gradients does.
  bool are_partial = false;    ///< Gradients: the backward pass that synchronizes is to come.
  bool owes_gradient = false;  ///< Whether the present pass does, to the stage before.

  int64_t stage() const { return ranks.rank(); }
  int64_t last_stage() const { return stages.count - 1; }
  bool is_last() const { return stage() == last_stage(); }

  void hook_units();
  at::Tensor receive_activation();
  void send_activation(const at::Tensor& output);
  /// On the last stage: a gradient does not come where a pass had no backward pass.
  void answer_left_out();
  /// Has the backward pass of `values`, which are of the present pass, call begin_backward.
  void call_at_backward(std::vector<at::Tensor>& values, bool synchronize);
  void begin_backward(int64_t of_pass, bool synchronize);
  /// Before the backward pass of `of_pass`, which synchronizes. Throws std::logic_error for an
  /// earlier pass whose backward pass may still come.
  void require_no_open_pass(int64_t of_pass);
  /// Throws std::logic_error where `are_partial`.
  void require_whole_gradients() const;
  /// Ends a step's backward passes: gradients may be used.
  void finish();
  void note_buffers();
  void require_same_buffers();
  /// What a pass with gradients returns on the last stage, and on others.
  Loss last_loss(Loss loss, bool synchronize);
  Loss loss_elsewhere(bool synchronize);
  /// What a pass without gradients returns.
  Loss measured(std::optional<Loss> loss);
};

}  // namespace phalanx
