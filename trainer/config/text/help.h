// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/fields.h"
#include "trainer/config/tree/fill.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

struct HelpOptions {
  std::size_t width = 80;  ///< The length of a line, in characters.
  bool colour = false;     ///< Whether paths stand out and defaults step back, as a terminal can.
  /// What `explain` says of a path that is not declared.
  ExplainKey explain_key = nullptr;
};

/// Fields by their dotted paths with type, range, unit, choices, default and meaning, those of a
/// registered class under the name that picks it: the text of `--help`.
std::string help(std::span<const FieldEntry> fields, const HelpOptions& options = {});

/// All that is declared of the fields at and below a dotted path. Without a resolved config: of
/// every class; with one: of the classes that it has chosen, with the value there and where it was
/// written. A name that a field had once finds it. Throws UserError with the nearest path for one
/// that is not declared, or with the classes that have it where the config has chosen others.
std::string explain(const Declaration& declaration, const std::string& path, const Node* resolved,
                    const HelpOptions& options = {});

/// The same as chapters of a page of Markdown: docs/config.md.
std::string reference(std::span<const FieldEntry> fields);

}  // namespace phalanx::config
