// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/persons_terminal.h"

#include <unistd.h>

#include <cstdlib>

namespace phalanx {
namespace {

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

bool is_launchers() {
  return is_set("OMPI_COMM_WORLD_RANK") || (is_set("SLURM_PROCID") && !is_set("SLURM_PTY_PORT"));
}

}  // namespace

bool is_persons_terminal(int descriptor) { return ::isatty(descriptor) == 1 && !is_launchers(); }

}  // namespace phalanx
