// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "trainer/launch/launchers/local_launcher/local_launcher.h"

namespace phalanx {

/// Takes the place that one launcher of known_launchers() has given to this process, whatever other
/// variables say. Throws UserError where its variables are not there.
class ForcedLauncher : public LocalLauncher {
 public:
  ForcedLauncher(const Config& config, std::string launcher)
      : LocalLauncher(config), launcher_(std::move(launcher)) {}

  std::optional<Environment> environment() const override { return find_environment(launcher_); }

 private:
  std::string launcher_;
};

}  // namespace phalanx
