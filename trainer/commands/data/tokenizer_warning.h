// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace phalanx {

/// Warns of a tokenizer that cannot be read here, or that has more tokens than its model.
void warn_of_tokenizer(const std::filesystem::path& folder, std::optional<int64_t> vocabulary_size);

}  // namespace phalanx
