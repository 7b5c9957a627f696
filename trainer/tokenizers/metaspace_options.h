// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace phalanx {

/// What a tokenizer.json says of a Metaspace, a pre-tokenizer and a decoder.
struct MetaspaceOptions {
  /// Where the sign for a space is put before a piece that has none there.
  enum class Prefix { never, first, always };

  std::string replacement;  ///< One character, the sign for a space.
  Prefix prefix = Prefix::always;
  bool splits = true;  ///< Before each sign.
};

/// Throws UserError and nlohmann::json::exception for what is none.
MetaspaceOptions read_metaspace_options(const nlohmann::json& object);

}  // namespace phalanx
