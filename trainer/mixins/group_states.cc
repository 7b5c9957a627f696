// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/group_states.h"

#include <utility>

#include "trainer/loop/trainer_base.h"

namespace phalanx {

GroupStates::GroupStates(const TrainerBase& trainer, RankGroup group)
    : trainer_(trainer), group_(std::move(group)) {}

std::vector<ShardedTensorView> GroupStates::tensors() {
  std::vector<ShardedTensorView> views;
  const auto add = [&](const std::string& part, std::vector<ShardedTensorView> of_rank) {
    for (ShardedTensorView& view : of_rank) {
      view.name = part + "." + view.name;
      views.push_back(of_group(std::move(view), group_));
    }
  };
  add("model", trainer_.task_model().views());
  add("optimizer", trainer_.optimizer_state());
  return views;
}

}  // namespace phalanx
