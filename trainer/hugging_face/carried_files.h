// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trainer/api/attachments.h"

namespace phalanx {

/// The files that a run's checkpoints carry: those that its task gives; of `source`, the files that
/// came with the model that the run began with, those that go with the same tokenizer; and
/// generation_config.json, that of `source` or a new one, with the token that ends a text as the
/// run learns it. None of them changes which tokenizer a folder of all of them is. Throws UserError
/// for a generation_config.json that cannot be read.
Attachments carried_files(Attachments of_task, const Attachments& source,
                          std::optional<int64_t> end_of_text);

/// Those of a checkpoint's carried names that only go along: a task need not give them.
std::set<std::string> names_that_go_along(const std::vector<std::string>& carried);

}  // namespace phalanx
