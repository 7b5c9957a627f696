// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "trainer/config/tree/forward.h"

namespace phalanx {

class TrainerBase;
struct Manifest;

/// A warning for each validation data whose values a run compares across a resume (keep_best, early
/// stopping, a plateau), and of which it measures another number of samples now:
/// validation.max_batches counts micro-batches on each rank. It names both numbers and what
/// measures the earlier samples. `manifest` is that of the checkpoint that the run goes on from,
/// `earlier` its config. Empty where nothing was measured yet.
std::vector<std::string> other_validations(const TrainerBase& trainer, const Manifest& manifest,
                                           const config::Node& earlier);

}  // namespace phalanx
