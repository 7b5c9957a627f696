// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// Something in a text that no config may hold, and the byte where it is.
struct TextDefect {
  std::size_t position = 0;
  std::string message;
};

/// The first byte that is not UTF-8, control character other than line end and tab, or tab in a
/// line's indentation.
std::optional<TextDefect> find_text_defect(std::string_view text);

/// Drops a byte order mark and turns the line ends of other systems into '\n'.
std::string normalized_lines(std::string_view text);

/// The place of a byte in a source's text.
Origin origin_at(const std::shared_ptr<const Source>& source, std::size_t position);

/// The place of the `${` at byte `offset` of a scalar's text, of which `scalar` is the place:
/// escapes and folded lines set the two apart. `scalar` itself where no `${` is, or it was written
/// otherwise.
Origin interpolation_origin(const Origin& scalar, std::string_view text, std::size_t offset);

/// Finds the places of many bytes of one source, fast when they come in order.
class Locator {
 public:
  explicit Locator(std::shared_ptr<const Source> source) : source_(std::move(source)) {}
  Origin at(std::size_t position);

 private:
  std::shared_ptr<const Source> source_;
  std::size_t position_ = 0;
  int line_ = 1;
  int column_ = 1;
};

/// Hides the brackets and commas of every unquoted `${...}` from a YAML parser, which would take
/// them for those of a flow list or map, and every `???`, of which yaml-cpp would make a key there.
/// The length stays the same; unmask brings them back.
std::string mask_interpolations(std::string text);
std::string unmask_interpolations(std::string text);

}  // namespace phalanx::config
