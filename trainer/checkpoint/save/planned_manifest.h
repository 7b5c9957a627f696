// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "trainer/checkpoint/format/contents.h"
#include "trainer/checkpoint/save/write_plan.h"

namespace phalanx {

/// Lists a plan's files and tensors, and where they stand, in `contents`. `checksums`: of each
/// rank, those of the chunks that it wrote, in the plan's order, eight bytes each.
void list_planned(const WritePlan& plan, std::span<const std::string> checksums,
                  Contents& contents);

/// The text of `<part>.safetensors.index.json`, by which readers open a model of several files.
std::string index_of(const WritePlan& plan, std::string_view part);

}  // namespace phalanx
