// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/same_pass.h"

#include <string>

#include "trainer/ranks/failures/unlike_passes.h"
#include "trainer/ranks/ranks.h"
#include "trainer/step/activity.h"
#include "trainer/step/step_parts.h"

namespace phalanx {
namespace {

// Numbers of decisions, apart from those that end a step or update.
enum Number : int64_t {
  kForward = -3,
  kUnsynchronized = -4,
  kWithoutGradients = -5,
  kBackward = -6
};

}  // namespace

Decision begins_forward(bool has_gradients, bool synchronize) {
  if (!has_gradients) {
    return {.number = kWithoutGradients, .text = "begins a forward pass without gradients"};
  }
  if (!synchronize) {
    return {.number = kUnsynchronized, .text = "begins a forward pass that does not synchronize"};
  }
  return {.number = kForward, .text = "begins a forward pass"};
}

Decision begins_backward() { return {.number = kBackward, .text = "begins a backward pass"}; }

void require_same_pass(const StepParts& parts, int64_t step, const Decision& pass) {
  const Ranks& ranks = parts.ranks();
  if (ranks.is_single_rank() || parts.shares() != ranks.world_size()) return;
  enter(ranks, step, activity_before(pass.text));
  require_agreement(pass, /*names=*/"", step, ranks);
}

}  // namespace phalanx
