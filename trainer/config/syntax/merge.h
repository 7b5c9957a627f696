// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// Lays `value` over `target`: maps merge key by key, everything else replaces. A section's short
/// form counts as its `name`, whichever of the two it is: `sgd` and `{name: sgd}` are the same.
/// A section in which nothing is written changes nothing. Where `value` names another class or
/// preset than the section had, both are noted (Node::renamings): the declaration knows whether the
/// class differs, so that fields of the earlier one go (fill.h).
void merge(Node& target, Node value);

/// Merges `value` into the map `tree` at a dotted path, as an override does. Setting a field of
/// `optimizer: sgd` makes it `{name: sgd, ...}`. `path_origin` is where the path was written, if it
/// was. Throws std::logic_error when the path leads through a list.
void assign(Node& tree, std::string_view path, Node value, Origin path_origin = {});

}  // namespace phalanx::config
