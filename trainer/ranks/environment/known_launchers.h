// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "trainer/ranks/environment/environment.h"
#include "trainer/ranks/environment/variables.h"

namespace phalanx {

/// Somebody who starts ranks, and how to read the variables that it gives them.
struct KnownLauncher {
  std::string_view name;     ///< "slurm": what launcher.name forces.
  std::string_view summary;  ///< "srun of Slurm".
  /// Whether it has started this process as one of several ranks.
  bool (*has_started)(const Variables& variables);
  /// The place of this process; `launcher` and `restart_count` are filled in by the caller. Throws
  /// UserError.
  Environment (*place)(const Variables& variables);
  /// Throws UserError where what another launcher has set contradicts these variables. Not asked
  /// where the config forces this launcher.
  void (*refuse_leftovers)(const Variables& variables) = nullptr;
};

/// All of them, in the order in which they are asked: one that runs inside another comes first
/// (torchrun under srun, mpirun in a Slurm job).
std::span<const KnownLauncher> known_launchers();

}  // namespace phalanx
