// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace phalanx {

/// The parts that every checkpoint has. Names of tensors are unique within a part.
inline constexpr std::string_view kModelPart = "model";
inline constexpr std::string_view kOptimizerPart = "optimizer";
inline constexpr std::string_view kRngPart = "rng";

/// Throws std::logic_error for a name of a further part (StatePart::name) that begins no file's, or
/// is that of another part.
void require_part_names(std::span<const std::string_view> names);

}  // namespace phalanx
