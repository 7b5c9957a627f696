// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "trainer/loop/trainer_setup.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Makes a validation of a training, and tells on rank 0's screen how far it is. `validation` gets
/// what it reports to. Throws what that throws.
void show_validation(const Ranks& ranks,
                     const std::function<void(const WorkCount& count)>& validation);

}  // namespace phalanx
