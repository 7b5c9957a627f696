// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "trainer/config/tree/node.h"

namespace phalanx {

/// Values that starts of a run have given to fields, by the field's dotted path; nothing where the
/// last of them left the field out.
using ToldValues = std::map<std::string, std::optional<config::Node>>;

/// What the starts since the newest checkpoint of the run in this folder have changed, as
/// starts.jsonl has it: they were let through, and no checkpoint was saved with them yet. The last
/// of them counts. One that was refused or failed before it had loaded its checkpoint (`began` in
/// ends.jsonl) has changed nothing. Empty without a checkpoint. Throws IoError.
ToldValues told_changes(const std::filesystem::path& exp_dir);

}  // namespace phalanx
