// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/cli/command.h"
#include "trainer/config/text/help.h"
#include "trainer/run/load_config.h"

namespace phalanx {

/// What `trainer config print` shows of a config.
struct PrintForm {
  bool minimal = false;  ///< Only what differs from the defaults.
  bool json = false;     ///< One line of JSON instead of YAML with origins.
};

/// The whole config that files and overrides resolve to. Throws UserError.
std::string printed_config(const UserConfig& user, PrintForm form);

/// `PATH [CONFIG ...] [key=value ...]`: what is declared of the fields at and below a path, and
/// with a config the values there, in the classes that it names. It need not be whole: what it
/// lacks elsewhere is a warning. Throws UserError.
std::string explained_path(Arguments arguments, const config::HelpOptions& options);

/// `[key=value ...]`: a commented config to begin with, for the trainer, task, model, optimizer and
/// schedule that the overrides name; if a kind has only one class, that one is taken. Its first
/// lines name what is still to be given. Throws UserError for what is not there.
std::string starter_config(Arguments arguments);

/// Every field of every registered trainer, as Markdown.
std::string config_reference();

}  // namespace phalanx
