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

/// Takes out of a section, which stands at `path`, what earlier layers have set of the fields that
/// a preset sets, where a later layer names that preset, and warns of other values than its own.
/// `name` is the preset's as it was written, an interpolation perhaps.
void drop_fields_of_preset(const Preset& preset, const Node& name, Node& section,
                           const std::string& path, Diagnostics& diagnostics);

}  // namespace phalanx::config
