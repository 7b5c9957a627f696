// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// Whether an open descriptor is a terminal that a person looks at. Open MPI and `srun -u` give
/// each task a terminal, from which they read lines; that of `srun --pty` is the person's.
bool is_persons_terminal(int descriptor);

}  // namespace phalanx
