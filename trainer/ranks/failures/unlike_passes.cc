// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/unlike_passes.h"

#include <fmt/format.h>

#include <algorithm>

namespace phalanx {
namespace {

constexpr std::string_view kBefore = "before it ";

// "step 3" of "step 3, backward".
std::string_view step_of(std::string_view activity) {
  return activity.substr(0, activity.find(','));
}

bool agrees(std::string_view activity) {
  const std::string_view step = step_of(activity);
  return activity.substr(step.size()).starts_with(fmt::format(", {}", kBefore));
}

}  // namespace

std::string activity_before(std::string_view decision) {
  return fmt::format("{}{}", kBefore, decision);
}

std::string unlike_passes(const SignsOfLife& signs) {
  if (!std::ranges::all_of(signs, [](const auto& sign) { return sign.has_value(); })) return {};
  const auto agreeing =
      std::ranges::find_if(signs, [](const auto& sign) { return agrees(sign->activity); });
  if (agreeing == signs.end()) return {};
  const std::string_view step = step_of((*agreeing)->activity);
  const bool is_unlike = std::ranges::any_of(signs, [&](const auto& sign) {
    return step_of(sign->activity) == step && sign->activity != (*agreeing)->activity;
  });
  if (!is_unlike) return {};
  return fmt::format(
      "\n  if none of them hangs, the ranks run other passes in {}: all ranks run the same passes "
      "of a task's training_step, and all update or all skip (docs/add_a_task.md, part 7). Decide "
      "by a value that all ranks have, as one that is summed over TrainingStep::ranks()",
      step);
}

}  // namespace phalanx
