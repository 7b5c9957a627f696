// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/stateful.h"

namespace phalanx {

/// The state of a learning-rate schedule as a checkpoint keeps it: with the schedule's name. A run
/// that resumes with another schedule begins that one anew.
class KeptSchedule : public Stateful {
 public:
  /// Called with the line that says so.
  using Tell = std::function<void(const std::string& line)>;

  /// `name`: lr_scheduler.name. `state` must outlive it.
  KeptSchedule(std::string name, Stateful& state, Tell tell);

  std::vector<ShardedTensorView> tensors() override { return state_.tensors(); }
  std::string json() const override;
  /// Throws UserError where the text is not one that `json` writes, and as the schedule does.
  void restore(std::string_view json) override;

 private:
  std::string name_;
  Stateful& state_;
  Tell tell_;
};

}  // namespace phalanx
