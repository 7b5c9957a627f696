// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/patterns/oniguruma.h"

#include <fmt/format.h>

#include <cctype>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/tokenizers/patterns/oniguruma_properties.h"

namespace phalanx {
namespace {

// What `\w` holds, for within brackets: the superscript digits and fractions of Latin-1 too.
constexpr std::string_view kWord =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string translate() {
    while (place_ < pattern_.size()) read_part();
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw UserError(fmt::format("the pattern '{}' is not supported: {}", pattern_, what));
  }

  std::string_view rest() const { return pattern_.substr(place_); }

  // Copies so many bytes.
  void copy(size_t count) {
    result_ += pattern_.substr(place_, count);
    place_ += count;
  }

  void begin_atom() { atom_ = result_.size(); }

  void read_part() {
    switch (pattern_[place_]) {
      case '\\':
        begin_atom();
        read_escape();
        return;
      case '[':
        begin_atom();
        read_class();
        return;
      case '(':
        groups_.push_back(result_.size());
        read_group();
        return;
      case ')':
        if (!groups_.empty()) {
          atom_ = groups_.back();
          groups_.pop_back();
        }
        copy(1);
        return;
      case '{':
        read_interval();
        return;
      case '*':
      case '+':
      case '?':
      case '|':
        copy(1);
        return;
      default:
        begin_atom();
        do copy(1);
        while (place_ < pattern_.size() && (pattern_[place_] & 0xC0) == 0x80);
    }
  }

  // "(" and what follows a "?" there.
  void read_group() {
    if (!rest().starts_with("(?")) {
      copy(1);
      return;
    }
    if (rest().starts_with("(?#")) {
      groups_.pop_back();
      copy(std::min(rest().find(')'), rest().size() - 1) + 1);
      return;
    }
    for (const std::string_view known : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"}) {
      if (!rest().starts_with(known)) continue;
      copy(known.size());
      return;
    }
    if (rest().starts_with("(?<")) {
      copy(3);
      return;
    }
    read_options();
  }

  // "(?i)", "(?i:", "(?m-i:".
  void read_options() {
    copy(2);
    for (; place_ < pattern_.size(); ++place_) {
      const char c = pattern_[place_];
      if (c == ':' || c == ')') {
        if (c == ')') groups_.pop_back();
        copy(1);
        return;
      }
      if (c != 'i' && c != 'm' && c != '-') refuse(fmt::format("'(?{}'", c));
      result_ += c == 'm' ? 's' : c;
    }
  }

  // "{1,3}", a "{" that is none, and what follows.
  void read_interval() {
    size_t end = place_ + 1;
    const auto skip_digits = [&] {
      const size_t begin = end;
      while (end < pattern_.size() && std::isdigit(static_cast<unsigned char>(pattern_[end]))) {
        ++end;
      }
      return end != begin;
    };
    const bool has_least = skip_digits();
    const bool has_comma = end < pattern_.size() && pattern_[end] == ',';
    if (has_comma) ++end;
    const bool has_most = has_comma && skip_digits();
    if (!(has_least || has_most) || end == pattern_.size() || pattern_[end] != '}') {
      begin_atom();
      result_ += "\\{";
      ++place_;
      return;
    }
    result_ += has_least ? "{" : "{0";
    result_ += pattern_.substr(place_ + 1, end - place_);
    place_ = end + 1;
    // Oniguruma repeats the whole; for PCRE2 a "+" is possessive and a "?" takes as few as can be.
    const bool is_repeated = rest().starts_with('+') || (rest().starts_with('?') && !has_comma);
    if (!is_repeated) return;
    result_.insert(atom_, "(?:");
    result_ += ')';
    copy(1);
  }

  void read_escape() {
    const std::string_view escape = rest().substr(0, 2);
    if (escape.size() < 2) refuse("it ends with a backslash");
    const char c = escape[1];
    if (c == 'w' || c == 'W') {
      result_ += fmt::format("[{}{}]", c == 'W' ? "^" : "", kWord);
    } else if (c == 'b' || c == 'B') {
      // A word on one side alone, or on both or neither.
      result_ += fmt::format("(?:(?<=[{0}])(?{1}[{0}])|(?<![{0}])(?{2}[{0}]))", kWord,
                             c == 'b' ? '!' : '=', c == 'b' ? '=' : '!');
    } else if (c == 'H') {
      result_ += "[^0-9a-fA-F]";
    } else if (c == 'h') {
      result_ += "[0-9a-fA-F]";
    } else {
      read_common_escape(c);
      return;
    }
    place_ += 2;
  }

  // An escape that means the same within brackets and without.
  void read_common_escape(char c) {
    if (c == 's' || c == 'S') {  // PCRE2's holds U+180E, which is no white space since Unicode 6.3.
      result_ += c == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
    } else if (c == 'd' || c == 'D') {
      result_ += c == 'd' ? "\\p{Nd}" : "\\P{Nd}";
    } else if (c == 'v') {
      result_ += "\\x0b";
    } else if (c == 'p' || c == 'P') {
      read_property(c == 'P');
      return;
    } else if (c == 'u') {
      read_code();
      return;
    } else if (std::isalpha(static_cast<unsigned char>(c)) &&
               std::string_view("AGKZaefknrtxz").find(c) == std::string_view::npos) {
      refuse(fmt::format("'\\{}'", c));
    } else if (c == 'G') {
      refuse("'\\G'");
    } else {
      copy(2);
      return;
    }
    place_ += 2;
  }

  // "\u3042".
  void read_code() {
    const std::string_view digits = rest().substr(2, 4);
    for (const char digit : digits) {
      if (!std::isxdigit(static_cast<unsigned char>(digit))) refuse("'\\u' without four digits");
    }
    if (digits.size() < 4) refuse("'\\u' without four digits");
    result_ += fmt::format("\\x{{{}}}", digits);
    place_ += 6;
  }

  // "\p{Letter}", "\p{^L}".
  void read_property(bool is_negated) {
    const size_t end = rest().find('}');
    if (!rest().substr(2).starts_with('{') || end == std::string_view::npos) {
      refuse("'\\p' without a name in braces");
    }
    std::string_view name = rest().substr(3, end - 3);
    if (name.starts_with('^')) {
      is_negated = !is_negated;
      name.remove_prefix(1);
    }
    const auto known = pcre2_property(name);
    if (!known) refuse(fmt::format("the property '{}'", name));
    result_ += fmt::format("\\{}{{{}}}", is_negated ? 'P' : 'p', *known);
    place_ += end + 1;
  }

  void read_class() {
    copy(rest().starts_with("[^") ? 2 : 1);
    if (rest().starts_with(']')) refuse("a ']' that begins a class");
    while (place_ < pattern_.size() && pattern_[place_] != ']') read_in_class();
    if (place_ == pattern_.size()) refuse("a class without its ']'");
    copy(1);
  }

  void read_in_class() {
    const char c = pattern_[place_];
    if (c == '[') refuse("a class within a class");
    if (rest().starts_with("&&")) refuse("'&&' in a class");
    if (c != '\\') {
      copy(1);
      return;
    }
    if (place_ + 1 == pattern_.size()) refuse("it ends with a backslash");
    const char escaped = pattern_[place_ + 1];
    if (escaped == 'w') {
      result_ += kWord;
    } else if (escaped == 'h') {
      result_ += "0-9a-fA-F";
    } else if (escaped == 'b') {
      result_ += "\\x08";
    } else if (std::string_view("WHBAGKZkz").find(escaped) != std::string_view::npos) {
      refuse(fmt::format("'\\{}' in a class", escaped));
    } else {
      read_common_escape(escaped);
      return;
    }
    place_ += 2;
  }

  const std::string_view pattern_;
  std::string result_;
  size_t place_ = 0;
  size_t atom_ = 0;             // Where in the result the last atom begins.
  std::vector<size_t> groups_;  // Where those groups begin that are open.
};

}  // namespace

std::string pcre2_of_oniguruma(std::string_view pattern) { return Translator(pattern).translate(); }

}  // namespace phalanx
