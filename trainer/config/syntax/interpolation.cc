// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/interpolation.h"

#include <algorithm>
#include <utility>

#include "trainer/config/syntax/source_text.h"

namespace phalanx::config {
namespace {

constexpr std::string_view kMark = "${";
constexpr std::string_view kBlanks = " \t";
// What a backslash takes the meaning from in an argument without quotes.
constexpr std::string_view kEscapable = "\\,=:()[]{} \t";
constexpr int kDeepestNesting = 16;

/// Recursive descent; the position is behind what has been read.
class InterpolationParser {
 public:
  InterpolationParser(std::string_view text, std::size_t position)
      : text_(text), position_(position) {}

  InterpolatedText whole() {
    InterpolatedText parts;
    while (!at_end()) add_next(parts, "");
    return parts;
  }

  Interpolation interpolation() {
    Interpolation result;
    result.begin = position_;
    if (++depth_ > kDeepestNesting) {
      throw TextDefect{result.begin, "the interpolations nest too deep"};
    }
    position_ += kMark.size();
    skip_blanks();
    while (!at("}:")) add_path_part(result);
    trim_end(result.path);
    if (at(":")) resolver(result);
    result.end = ++position_;
    --depth_;
    return result;
  }

 private:
  bool at_end() const { return position_ == text_.size(); }
  bool at(std::string_view characters) const {
    return !at_end() && characters.find(text_[position_]) != std::string_view::npos;
  }
  bool at_mark() const { return text_.substr(position_).starts_with(kMark); }
  void skip_blanks() {
    while (at(kBlanks)) ++position_;
  }

  [[noreturn]] static void refuse_open(std::size_t begin) {
    throw TextDefect{begin, "the interpolation ${ is not closed by }"};
  }

  static void add_literal(InterpolatedText& parts, std::string_view text) {
    if (text.empty()) return;
    if (parts.empty() || !parts.back().interpolation.empty()) parts.emplace_back();
    parts.back().literal += text;
  }

  void add_interpolation(InterpolatedText& parts) {
    TextPart part;
    part.interpolation.push_back(interpolation());
    parts.push_back(std::move(part));
  }

  /// The next character or interpolation. Before `${` or one of `quotes` each pair of backslashes
  /// is one, and an odd one takes its meaning; elsewhere they stand for themselves.
  void add_next(InterpolatedText& parts, std::string_view quotes) {
    const std::size_t end = std::min(text_.find_first_not_of('\\', position_), text_.size());
    const std::size_t backslashes = end - position_;
    if (backslashes == 0) {
      if (at_mark()) return add_interpolation(parts);
      return add_literal(parts, text_.substr(position_++, 1));
    }
    position_ = end;
    const std::size_t marked = at_mark() ? kMark.size() : at(quotes) ? 1 : 0;
    add_literal(parts, text_.substr(end - backslashes, marked > 0 ? backslashes / 2 : backslashes));
    if (marked > 0 && backslashes % 2 == 1) {
      add_literal(parts, text_.substr(position_, marked));
      position_ += marked;
    }
  }

  void add_path_part(Interpolation& result) {
    if (at_end()) refuse_open(result.begin);
    if (at_mark()) return add_interpolation(result.path);
    add_literal(result.path, text_.substr(position_++, 1));
  }

  /// Takes away blanks at the end that are written, not inserted, from byte `kept` on.
  static void trim_end(InterpolatedText& parts, std::size_t kept = 0) {
    if (parts.empty() || !parts.back().interpolation.empty()) return;
    std::string& text = parts.back().literal;
    text.erase(std::max(text.find_last_not_of(kBlanks) + 1, kept));
    if (text.empty()) parts.pop_back();
  }

  /// From the colon to the brace that closes.
  void resolver(Interpolation& result) {
    const bool is_named = result.path.size() == 1 && result.path[0].interpolation.empty();
    result.resolver = is_named ? result.path[0].literal
                               : std::string(text_.substr(result.begin + kMark.size(),
                                                          position_ - result.begin - kMark.size()));
    result.path.clear();
    ++position_;
    if (result.resolver != kEnvironmentResolver) return skip_arguments(result.begin);
    do {
      result.arguments.push_back(argument(result.begin));
    } while (text_[position_++] == ',');
    --position_;
  }

  /// What a resolver takes that is none of ours is not read.
  void skip_arguments(std::size_t begin) {
    for (int open = 1;; ++position_) {
      if (at_end()) refuse_open(begin);
      if (at("{")) ++open;
      if (at("}") && --open == 0) return;
    }
  }

  InterpolationArgument argument(std::size_t begin) {
    skip_blanks();
    InterpolationArgument result = at("'\"") ? quoted(begin) : unquoted(begin);
    if (at_end()) refuse_open(begin);
    if (!at(",}")) {
      throw TextDefect{begin,
                       "in ${oc.env:...} more follows behind a quoted text; quote all of it"};
    }
    return result;
  }

  InterpolationArgument quoted(std::size_t begin) {
    const std::string_view quote = text_.substr(position_++, 1);
    InterpolationArgument result{.text = {}, .is_quoted = true};
    while (!at(quote)) {
      if (at_end()) throw TextDefect{begin, "in ${oc.env:...} a quoted text is not closed"};
      add_next(result.text, quote);
    }
    ++position_;
    skip_blanks();
    return result;
  }

  /// Whether a backslash is here that takes a meaning from the character behind it.
  bool at_escape() const {
    if (!at("\\") || position_ + 1 == text_.size()) return false;
    return kEscapable.find(text_[position_ + 1]) != std::string_view::npos ||
           text_.substr(position_ + 1).starts_with(kMark);
  }

  /// Brackets and what is between them are part of the text.
  InterpolationArgument unquoted(std::size_t begin) {
    InterpolationArgument result;
    InterpolatedText& parts = result.text;
    std::size_t kept_parts = 0, kept_length = 0;  // up to here blanks are escaped ones
    for (int open = 0; open > 0 || !at(",}");) {
      if (at_end()) refuse_open(begin);
      if (at_escape()) {
        add_literal(parts, text_.substr(position_ + 1, 1));
        position_ += 2;
        kept_parts = parts.size();
        kept_length = parts.back().literal.size();
      } else if (at_mark()) {
        add_interpolation(parts);
      } else {
        if (at("{[")) ++open;
        if (at("}]") && open > 0) --open;
        add_literal(parts, text_.substr(position_++, 1));
      }
    }
    trim_end(parts, parts.size() == kept_parts ? kept_length : 0);
    return result;
  }

  std::string_view text_;
  std::size_t position_;
  int depth_ = 0;
};

}  // namespace

InterpolatedText parse_interpolated(std::string_view text) {
  return InterpolationParser(text, 0).whole();
}

std::size_t interpolation_end(std::string_view text, std::size_t begin) {
  return InterpolationParser(text, begin).interpolation().end;
}

}  // namespace phalanx::config
