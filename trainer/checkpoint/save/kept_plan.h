// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/checkpoint/save/write_plan.h"

namespace phalanx {

class Ranks;

/// What of this rank a plan depends on, as text: which ranges of which tensors it holds, its host,
/// the limits. The plan stays the same as long as no rank's text changes.
std::string brought_to_plan(std::span<const std::vector<ShardedTensorView>> parts,
                            const std::string& host, const PlanLimits& limits);

/// The plan of the save before. Who holds what changes rarely, and to exchange it takes memory and
/// time that grow with the number of ranks.
class KeptPlan {
 public:
  /// What `make` makes, or has made for the last call if every rank brings now what it brought
  /// then. Every rank calls it; `make` may exchange.
  std::shared_ptr<const WritePlan> get(std::string brought, const Ranks& ranks,
                                       const std::function<WritePlan()>& make);

 private:
  std::string brought_;
  std::shared_ptr<const WritePlan> plan_;
};

}  // namespace phalanx
