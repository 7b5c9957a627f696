// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/source_text.h"

#include <algorithm>

#include "trainer/base/utf8.h"

namespace phalanx::config {

namespace {

// Bytes that occur in no UTF-8 text, so that no escape sequence can make them either.
constexpr std::string_view kHidden = "{},[]?";
constexpr std::string_view kMasks = "\xF8\xF9\xFA\xFB\xFC\xFD";
constexpr std::string_view kMissing = "???";

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
}

/// "0x07"
std::string hexadecimal(char c) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

/// The end of the interpolation that starts at `start`, or npos when it is not closed on its line
/// or holds a quote, which then belongs to YAML.
std::size_t interpolation_end(std::string_view text, std::size_t start) {
  int depth = 0;
  for (std::size_t i = start + 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n' || c == '"' || c == '\'') return std::string_view::npos;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

/// The byte that is at a place, whose line the source has.
std::size_t position_of(const Origin& origin) {
  const std::string& text = origin.source->text;
  std::size_t position = 0;
  for (int line = 1; line < origin.line; ++line) position = text.find('\n', position) + 1;
  for (int column = 1; column < origin.column && position < text.size(); ++column) {
    position += std::max<std::size_t>(character_length(std::string_view(text).substr(position)), 1);
  }
  return position;
}

void replace_all(std::string::iterator begin, std::string::iterator end, std::string_view from,
                 std::string_view to) {
  for (auto c = begin; c != end; ++c) {
    if (const std::size_t found = from.find(*c); found != std::string_view::npos) *c = to[found];
  }
}

}  // namespace

std::optional<TextDefect> find_text_defect(std::string_view text) {
  bool indentation = true;
  std::size_t tab = std::string_view::npos;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text.substr(i));
    if (length == 0) return TextDefect{i, "the text is not UTF-8 here"};
    const char c = text[i];
    if (is_control(c)) {
      return TextDefect{i, "a control character (" + hexadecimal(c) + ") is not allowed"};
    }
    if (c == '\n') {
      indentation = true;
      tab = std::string_view::npos;
    } else if (indentation && c == '\t') {
      tab = std::min(tab, i);
    } else if (indentation && c != ' ') {
      if (tab != std::string_view::npos) {
        return TextDefect{tab, "a tab cannot indent; write spaces"};
      }
      indentation = false;
    }
    i += length;
  }
  return std::nullopt;
}

std::string normalized_lines(std::string_view text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      result += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      result += '\n';
    }
  }
  return result;
}

Origin Locator::at(std::size_t position) {
  const std::string& text = source_->text;
  position = std::min(position, text.size());
  if (position < position_) *this = Locator(source_);
  for (; position_ < position; ++position_) {
    const char c = text[position_];
    if (c == '\n') {
      ++line_;
      column_ = 1;
    } else if (!continues_character(c)) {
      ++column_;
    }
  }
  return {source_, line_, column_};
}

Origin origin_at(const std::shared_ptr<const Source>& source, std::size_t position) {
  return Locator(source).at(position);
}

Origin interpolation_origin(const Origin& scalar, std::string_view text, std::size_t offset) {
  constexpr std::string_view kMark = "${";
  if (scalar.line == 0 || !text.substr(offset).starts_with(kMark)) return scalar;
  const std::string_view source = scalar.source->text;
  // The scalar's marks are those of the source, in their order.
  std::size_t place = source.find(kMark, position_of(scalar));
  for (std::size_t mark = text.find(kMark); mark < offset && place != std::string_view::npos;
       mark = text.find(kMark, mark + 1)) {
    place = source.find(kMark, place + 1);
  }
  const std::string_view expression =
      text.substr(offset, text.find_first_of(" \n}", offset) - offset);
  const bool is_there =
      place != std::string_view::npos && source.substr(place).starts_with(expression);
  return is_there ? origin_at(scalar.source, place) : scalar;
}

std::string mask_interpolations(std::string text) {
  for (std::size_t start = text.find("${"); start != std::string::npos;
       start = text.find("${", start + 1)) {
    const std::size_t end = interpolation_end(text, start);
    if (end == std::string::npos) continue;
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(start);
    replace_all(begin, text.begin() + static_cast<std::ptrdiff_t>(end) + 1, kHidden, kMasks);
  }
  for (std::size_t start = text.find(kMissing); start != std::string::npos;
       start = text.find(kMissing, start + kMissing.size())) {
    text.replace(start, kMissing.size(), kMissing.size(), kMasks.back());
  }
  return text;
}

std::string unmask_interpolations(std::string text) {
  replace_all(text.begin(), text.end(), kMasks, kHidden);
  return text;
}

}  // namespace phalanx::config
