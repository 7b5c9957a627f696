// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/config/syntax/interpolate.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/unknown_keys.h"

namespace phalanx::config {

/// Makes a tree complete: every declared field is there, in the declared order, as it was given, as
/// a preset has it, or with its default; short forms become sections, and names that fields had
/// once their names of today, with a warning. A null takes back what else was given, where null is
/// no value. Unknown keys and names, and values where sections are wanted, go to `diagnostics`.
/// `known` is what interpolations of a class's or preset's name may use besides the tree;
/// `explain_key` is asked about unknown keys, unless it is nullptr.
void fill(const Declaration& declaration, Node& tree, const KnownValues& known,
          ExplainKey explain_key, Diagnostics& diagnostics);

}  // namespace phalanx::config
