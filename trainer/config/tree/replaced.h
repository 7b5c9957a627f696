// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/config/syntax/interpolate.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// Takes out of a choice's section, which stands at `path`, what earlier layers have set in it for
/// another class than the one that a later layer names, and warns of it. Merging has noted who
/// renamed what (Node::renamings); the notes are used up. `tree` and `known` are what
/// interpolations of a class's name may use.
void drop_replaced(const Choice& choice, Node& section, const std::string& path, const Node& tree,
                   const KnownValues& known, Diagnostics& diagnostics);

}  // namespace phalanx::config
