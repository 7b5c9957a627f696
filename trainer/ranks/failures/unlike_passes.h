// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "trainer/ranks/failures/roll_call.h"

namespace phalanx {

/// The activity of a rank that makes sure in a task's own step that all do the same: "before it
/// skips" for "skips".
std::string activity_before(std::string_view decision);

/// What a failure of all ranks may come from, as a line of its message: a rank agrees on what it
/// does next in a task's own step (activity_before), while another one is in a pass of this step.
/// Empty where that is not so, or a rank has not answered.
std::string unlike_passes(const SignsOfLife& signs);

}  // namespace phalanx
