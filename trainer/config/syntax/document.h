// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// The one YAML document of a text, or nothing when that has none. A text that is no YAML, or has
/// more than one document, goes to `diagnostics` and yields nothing as well. Positions in `text`
/// are those of `source`: parts that are not to be read are blank.
std::optional<Node> parse_document(const std::shared_ptr<const Source>& source, std::string text,
                                   Diagnostics& diagnostics);

}  // namespace phalanx::config
