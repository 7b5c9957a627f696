// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// The dotted paths of fields that `kept` lacks, the whole config of a run as an older program has
/// written it, and that such a run goes on without (FieldBuilder::older_runs_have_none).
std::vector<std::string> fields_without_value(const Declaration& declaration, const Node& kept);

/// Sets null at these paths of a config, where their sections are there and nothing is given.
void leave_without_value(Node& tree, const std::vector<std::string>& paths);

}  // namespace phalanx::config
