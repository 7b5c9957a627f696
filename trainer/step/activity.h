// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Notes what this rank does now, for errors of collectives and for the last words of a rank that
/// ends abruptly: "step 3, forward".
void enter(const Ranks& ranks, int64_t step, std::string_view activity);

/// The same words for an error. Before the first step, and where a trained model is used, there is
/// no step to name.
std::string place_of(int64_t step, std::string_view activity);

}  // namespace phalanx
