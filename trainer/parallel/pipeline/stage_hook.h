// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "trainer/api/module_hook.h"

namespace phalanx::pipeline {

/// Thrown where a pass has come behind the stage's last unit: what follows is for other stages. No
/// std::exception, so that nobody takes it for an error on the way.
struct StageIsOver {};

/// The units of a pass on one stage, as the hooks of all units lead through it.
class StagePass {
 public:
  struct Units {
    int64_t first = 0;  ///< This stage's.
    int64_t end = 0;    ///< One past its last.
    int64_t of_model = 0;
  };
  /// Gives what the stage before has computed.
  using Receive = std::function<at::Tensor()>;
  /// Takes what this stage has computed.
  using Send = std::function<void(const at::Tensor& output)>;

  StagePass(Units units, Receive receive, Send send);

  /// A pass begins, or ends: without one the hooks call the units as they are.
  void begin();
  void end() { is_running_ = false; }
  /// Whether all units of the model have been called.
  bool is_whole() const { return next_ == units_.of_model; }

  /// Unit `index` is called. Throws std::logic_error for a model of another form than Pipeline's.
  std::vector<at::Tensor> around(int64_t index, std::vector<at::Tensor> inputs,
                                 const ModuleForward& forward);

 private:
  std::vector<at::Tensor> pass_over(const std::vector<at::Tensor>& inputs,
                                    const ModuleForward& forward);
  void put_received(std::vector<at::Tensor>& inputs);

  Units units_;
  Receive receive_;
  Send send_;
  bool is_running_ = false;
  int64_t next_ = 0;
  at::Tensor standing_in_;  ///< For the result of a unit of an earlier stage.
};

/// Leads unit `index` of the model through `pass`.
std::shared_ptr<ModuleHook> unit_hook(std::shared_ptr<StagePass> pass, int64_t index);

}  // namespace phalanx::pipeline
