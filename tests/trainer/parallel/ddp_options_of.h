// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"
#include "trainer/parallel/parallel_config.h"

namespace phalanx {

/// DDP's options as a config has them, with all comm hooks to choose from. Throws UserError for
/// mistakes.
inline DdpOptions ddp_options_of(const std::string& yaml) {
  config::Diagnostics diagnostics;
  config::Node tree = config::parse_yaml(yaml, "test.yaml", diagnostics);
  tree = config::resolve(config::declaration<DdpOptions>(), std::move(tree), diagnostics);
  diagnostics.throw_if_any();
  return config::read<DdpOptions>(tree);
}

}  // namespace phalanx
