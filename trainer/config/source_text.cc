#include "trainer/config/source_text.h"

#include <algorithm>

namespace phalanx::config {

namespace {

// Bytes that occur in no UTF-8 text, so that no escape sequence can make them either.
constexpr std::string_view kHidden = "{},[]";
constexpr std::string_view kMasks = "\xF8\xF9\xFA\xFB\xFC";

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// Length in bytes of the well-formed UTF-8 character at the start of a text, or 0.
std::size_t character_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  if (!std::all_of(text.begin() + 1, text.begin() + length, continues_character)) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second >= 0xA0;
  const bool beyond = lead == 0xF4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
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
    if (is_control(c)) return TextDefect{i, "a control character is not allowed here"};
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

std::string mask_interpolations(std::string text) {
  for (std::size_t start = text.find("${"); start != std::string::npos;
       start = text.find("${", start + 1)) {
    const std::size_t end = interpolation_end(text, start);
    if (end == std::string::npos) continue;
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(start);
    replace_all(begin, text.begin() + static_cast<std::ptrdiff_t>(end) + 1, kHidden, kMasks);
  }
  return text;
}

std::string unmask_interpolations(std::string text) {
  replace_all(text.begin(), text.end(), kMasks, kHidden);
  return text;
}

}  // namespace phalanx::config
