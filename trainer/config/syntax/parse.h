// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

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

/// Reads one override in Hydra's grammar and applies it to `tree`: `a.b=value` merges (see assign),
/// `a.b[2]=value` sets an element of a list, `+a=value` sets only what is not set, `++a=value` sets
/// in any case (also what a resume may otherwise not change), `~a` takes back what files and
/// earlier overrides have set, `~a=value` if it is that. parse_override_value says what a value may
/// be. Mistakes go to `diagnostics` with the argument and the column in it.
void apply_override(Node& tree, std::string argument, Diagnostics& diagnostics);

/// Whether an override begins with `++` and sets the value at a dotted path, or picks the class of
/// the section around it.
bool is_forced(std::string_view argument, std::string_view path);

}  // namespace phalanx::config
