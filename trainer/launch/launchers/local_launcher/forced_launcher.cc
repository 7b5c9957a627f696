// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <optional>

#include "trainer/config/tree/schema.h"
#include "trainer/launch/launchers/local_launcher/local_launcher.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

// A name of known_launchers() as an argument of a template.
template <size_t size>
struct Name {
  consteval Name(const char (&text)[size]) { std::copy_n(text, size, letters); }
  char letters[size];
};

/// Takes the place that one launcher of known_launchers() has given to this process, whatever other
/// variables say.
template <Name name>
class Forced : public LocalLauncher {
 public:
  using LocalLauncher::LocalLauncher;
  std::optional<Environment> environment() const override { return find_environment(name.letters); }
};

/// This process starts its ranks itself, whatever has started it: a step of several tasks may be as
/// many runs.
class Alone : public LocalLauncher {
 public:
  using LocalLauncher::LocalLauncher;
  std::optional<Environment> environment() const override { return std::nullopt; }
};

REGISTER_LAUNCHER("torch", Forced<"torch">);
REGISTER_LAUNCHER("open_mpi", Forced<"open_mpi">);
REGISTER_LAUNCHER("mpich", Forced<"mpich">);
REGISTER_LAUNCHER("mvapich", Forced<"mvapich">);
REGISTER_LAUNCHER("lsf", Forced<"lsf">);
REGISTER_LAUNCHER("slurm", Forced<"slurm">);
REGISTER_LAUNCHER("pmi", Forced<"pmi">);
REGISTER_LAUNCHER("kubernetes", Forced<"kubernetes">);
REGISTER_LAUNCHER("alone", Alone);

}  // namespace
}  // namespace phalanx
