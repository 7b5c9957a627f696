// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::config {

struct Interpolation;

/// Literal text, or an interpolation within a text.
struct TextPart {
  std::string literal;
  std::vector<Interpolation>
      interpolation;  ///< One, or none: a vector, as each may hold the other.
};

/// A text as it is written, in parts; without one it is the empty text.
using InterpolatedText = std::vector<TextPart>;

/// What stands between the commas behind a resolver's colon.
struct InterpolationArgument {
  InterpolatedText text;
  bool is_quoted = false;
};

/// One `${...}`.
struct Interpolation {
  std::size_t begin = 0;                         ///< Its first byte in the text that was parsed.
  std::size_t end = 0;                           ///< The byte behind its last.
  InterpolatedText path;                         ///< The path to a value, if no resolver is named.
  std::optional<std::string> resolver;           ///< What stands before the colon: "oc.env".
  std::vector<InterpolationArgument> arguments;  ///< One or more; of kEnvironmentResolver alone.
};

/// The one resolver, whose arguments are a variable and its default.
constexpr std::string_view kEnvironmentResolver = "oc.env";

/// Reads a text with interpolations, once: what is inserted later is never read as a part of the
/// grammar, which is OmegaConf 2.3's (omegaconf/grammar/OmegaConfGrammarParser.g4;
/// docs/overrides.md says where the two part). Throws TextDefect, whose position is that of a `${`.
InterpolatedText parse_interpolated(std::string_view text);

/// The byte behind the interpolation that begins at `begin`. Throws TextDefect as above.
std::size_t interpolation_end(std::string_view text, std::size_t begin);

}  // namespace phalanx::config
