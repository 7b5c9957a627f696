// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// A value that differs between two configs, printed inline; "(absent)" where one has none.
struct Difference {
  std::string path;
  std::string a;
  std::string b;
};

/// What differs, by dotted path, in the order of `a`, then what only `b` has. Lists of sections are
/// compared by their elements ("task.data.mixture[1].share"), other lists as one value.
/// Declaration::resume_may_change says whether a resume may change a path.
std::vector<Difference> differences(const Node& a, const Node& b);

}  // namespace phalanx::config
