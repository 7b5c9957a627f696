// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace phalanx {

struct State;
struct TrainingConfig;

/// A warning where a run that goes on from `state` is further than a limit of its config
/// (training.max_steps, max_epochs, max_samples), so that it trains nothing; nothing else. A run
/// that ends at its limit is not: its last step, of `samples_a_step`, may exceed max_samples.
std::optional<std::string> beyond_limit(const TrainingConfig& training, const State& state,
                                        int64_t samples_a_step);

}  // namespace phalanx
