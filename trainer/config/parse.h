#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "trainer/config/diagnostics.h"
#include "trainer/config/node.h"

namespace phalanx::config {

/// Bounds on what a config may be; beyond them it is refused, not read.
inline constexpr std::size_t kMaxConfigBytes = 1 << 20;
inline constexpr int kMaxDepth = 64;

/// Reads a YAML file whose top level is a map. The strict part of YAML 1.2: duplicate keys,
/// anchors, aliases, merge keys, tags, tabs in indentation and further documents go to
/// `diagnostics`. A file that is missing, unreadable, no UTF-8 text, empty or no YAML at all throws
/// UserError, together with what `diagnostics` holds by then.
Node read_file(const std::filesystem::path& path, Diagnostics& diagnostics);

/// The same for text; `name` stands in messages where the path of a file would.
Node parse_yaml(const std::string& text, std::string name, Diagnostics& diagnostics);

/// Reads one override, `key=value` with a dotted key, and merges it into `tree` (see assign). The
/// value is a YAML flow node: `[0.9, 0.95]`, `{name: sgd}`, a quoted text, or plain text as it
/// stands. Mistakes go to `diagnostics` with the argument and the column in it.
void apply_override(Node& tree, std::string argument, Diagnostics& diagnostics);

}  // namespace phalanx::config
