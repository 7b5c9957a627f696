// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/cli/command.h"

/// What several commands take.
namespace phalanx {

inline constexpr Positional kConfig{"CONFIG", Positional::Takes::config};
inline constexpr Positional kConfigs{"CONFIG", Positional::Takes::config, Positional::Count::any};
inline constexpr Positional kOverrides{"key=value", Positional::Takes::override,
                                       Positional::Count::any};
/// A run's folder, its checkpoints, or one of them.
inline constexpr Positional kCheckpoints{"FOLDER", Positional::Takes::run};

}  // namespace phalanx
