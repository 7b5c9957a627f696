// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::config {

struct Node;

struct PrintOptions {
  bool with_origins = false;         ///< A trailing comment says where each value was written.
  bool mark_defaults = false;        ///< With origins: `# default` on values nobody wrote.
  bool escape_interpolation = true;  ///< Writes `${` as `\${`: right for a resolved tree.
};

/// YAML that reads back to the same tree (same_value), also by readers of YAML 1.1.
std::string print(const Node& node, const PrintOptions& options = {});

/// One value as it would stand within a line: `[0.9, 0.999]`, `{name: sgd, lr: 0.1}`.
std::string print_inline(const Node& node, const PrintOptions& options = {});

/// One line of JSON with types: integers, reals, booleans, null, strings. What JSON has no number
/// for, `.inf`, is a string.
std::string to_json(const Node& node);

}  // namespace phalanx::config
