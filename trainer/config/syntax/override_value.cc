// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/override_value.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/config/syntax/interpolation.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/source_text.h"

namespace phalanx::config {

namespace {

constexpr std::string_view kEscapable = ",=:()[]{} \\";

/// A backslash that may be meant as an escape.
struct Escape {
  std::size_t position = 0;
  bool is_quoted = false;  ///< Between double quotes, else in plain text.
};

/// Recursive descent over Hydra's grammar of values (hydra/grammar/OverrideParser.g4).
class ValueParser {
 public:
  ValueParser(std::shared_ptr<const Source> source, std::size_t start)
      : source_(std::move(source)), text_(source_->text), position_(start), locator_(source_) {}

  /// The whole rest of the text as one value. Throws TextDefect.
  Node parse() {
    skip_blanks();
    if (at_end()) return placed(Node::string(""), position_);
    Node value = parse_element(0);
    skip_blanks();
    if (at_end()) return value;
    if (text_[position_] == ',') {
      throw TextDefect{position_,
                       "a comma separates values here, and one value is expected; for a list write "
                       "[a,b], for text with a comma quote it or write \\,"};
    }
    throw TextDefect{position_,
                     value.is_scalar() && value.type == ScalarType::plain
                         ? "'" + std::string(1, text_[position_]) +
                               "' has a meaning here; quote the text, or write a \\ before it"
                         : "the value has ended, but more follows; quote it, or leave this out"};
  }

  /// The first backslash that may be meant as an escape.
  const std::optional<Escape>& escape() const { return escape_; }

 private:
  bool at_end() const { return position_ == text_.size(); }
  bool at(std::string_view characters) const {
    return !at_end() && characters.find(text_[position_]) != std::string_view::npos;
  }
  void skip_blanks() {
    while (at(" ")) ++position_;
  }
  Node placed(Node node, std::size_t begin) {
    node.origin = locator_.at(begin);
    return node;
  }

  Node parse_element(int depth) {
    skip_blanks();
    if (depth > kMaxDepth) {
      throw TextDefect{position_,
                       "lists and maps nest deeper than " + std::to_string(kMaxDepth) + " levels"};
    }
    if (at("[")) return parse_list(depth);
    if (at("{")) return parse_map(depth);
    if (at("'\"")) return parse_quoted();
    return parse_plain("");
  }

  Node parse_list(int depth) {
    const std::size_t begin = position_++;
    Node list = placed(Node::list(), begin);
    skip_blanks();
    while (!at("]")) {
      list.items.push_back(parse_element(depth + 1));
      next_item("]", begin, "list");
    }
    ++position_;
    return list;
  }

  Node parse_map(int depth) {
    const std::size_t begin = position_++;
    Node map = placed(Node::map(), begin);
    skip_blanks();
    while (!at("}")) {
      const std::size_t key_begin = position_;
      if (at("[{")) throw TextDefect{position_, "a key is text; write {key: value}"};
      const Node key = at("'\"") ? parse_quoted() : parse_plain(":");
      if (key.is_null()) throw TextDefect{key_begin, "a key is text; write {key: value}"};
      skip_blanks();
      if (!at(":")) throw TextDefect{position_, "a ':' and a value are missing after the key"};
      ++position_;
      if (map.find(key.text) != nullptr) {
        throw TextDefect{key_begin, "the key '" + key.text + "' is given twice"};
      }
      map.entries.push_back({key.text, key.origin, parse_element(depth + 1)});
      next_item("}", begin, "map");
    }
    ++position_;
    return map;
  }

  /// Behind an element of a list or map: its end, or a comma and what follows.
  void next_item(std::string_view end, std::size_t begin, std::string_view what) {
    skip_blanks();
    if (at(end)) return;
    if (at_end()) {
      throw TextDefect{begin, "the " + std::string(what) + " that begins here is not closed"};
    }
    if (!at(",")) {
      throw TextDefect{position_,
                       "a comma or the end of the " + std::string(what) + " is expected here"};
    }
    ++position_;
    skip_blanks();
    if (at(end)) throw TextDefect{position_, "a value is missing after the comma"};
  }

  /// Only the quote itself is escaped within; any other backslash stands for itself, as in Hydra.
  Node parse_quoted() {
    const std::size_t begin = position_;
    const char quote = text_[position_++];
    std::string text;
    for (; !at_end() && text_[position_] != quote; ++position_) {
      const std::size_t end = text_.find_first_not_of('\\', position_);
      const std::size_t backslashes = std::min(end, text_.size()) - position_;
      if (backslashes == 0 || end == std::string_view::npos || text_[end] != quote) {
        if (backslashes == 1 && quote == '"') note_escape(/*is_quoted=*/true);
        text.append(text_, position_, std::max<std::size_t>(backslashes, 1));
        position_ += std::max<std::size_t>(backslashes, 1) - 1;
        continue;
      }
      // Before the quote each pair is one backslash, and an odd one escapes the quote.
      text.append(backslashes / 2, '\\');
      position_ = end;
      if (backslashes % 2 == 0) break;
      text += quote;
    }
    if (at_end()) throw TextDefect{begin, "the quoted text that begins here is not closed"};
    ++position_;
    return placed(Node::string(std::move(text)), begin);
  }

  /// At a backslash that stands for itself. YAML and most languages have these escapes between
  /// double quotes; a shell hands "\n" on without its quotes.
  void note_escape(bool is_quoted) {
    const std::size_t letter = position_ + 1;
    if (escape_ || letter >= text_.size() ||
        std::string_view("ntr").find(text_[letter]) == std::string_view::npos) {
      return;
    }
    // A letter that begins a word, as in a path or in LaTeX, is no escape.
    const bool begins_word = letter + 1 < text_.size() &&
                             std::islower(static_cast<unsigned char>(text_[letter + 1])) != 0;
    if (!begins_word) escape_ = Escape{.position = position_, .is_quoted = is_quoted};
  }

  /// `stops` end the text, beside what ends it everywhere.
  Node parse_plain(std::string_view stops) {
    const std::size_t begin = position_;
    std::string text;
    std::size_t kept = 0;  // blanks at the end are no part of it, unless they are escaped
    bool escaped = false;
    while (!at_end() && !at(stops) && !at(",()[]{}")) {
      if (at("\\") && position_ + 1 < text_.size() &&
          kEscapable.find(text_[position_ + 1]) != std::string_view::npos) {
        text += text_[++position_];
        ++position_;
        kept = text.size();
        escaped = true;
        continue;
      }
      if (at("\\")) note_escape(/*is_quoted=*/false);
      const std::size_t length = interpolation_length();
      text.append(text_, position_, length);
      position_ += length;
      if (text.back() != ' ') kept = text.size();
    }
    if (at("(")) refuse_parenthesis(begin, std::string_view(text).substr(0, kept));
    if (kept == 0) {
      const std::string found = at_end() ? "the end" : "'" + std::string(1, text_[position_]) + "'";
      throw TextDefect{position_, "a value is expected here, not " + found};
    }
    text.resize(kept);
    Node node = escaped         ? Node::string(std::move(text))
                : is_null(text) ? Node::null()
                                : Node::plain(std::move(text));
    return placed(std::move(node), begin);
  }

  /// Hydra has functions, for sweeps and casts.
  [[noreturn]] void refuse_parenthesis(std::size_t begin, std::string_view before) const {
    const bool is_name =
        !before.empty() && std::all_of(before.begin(), before.end(),
                                       [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    if (!is_name) {
      throw TextDefect{position_,
                       "'(' has a meaning here; quote the text, or write a \\ before it"};
    }
    throw TextDefect{begin, "functions such as " + std::string(before) +
                                "(...) are not supported: a run takes one value, and its field "
                                "knows the type; write that value, or for text with a ( quote it "
                                "or write \\("};
  }

  static bool is_null(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    return text == "null" || text == "~";
  }

  /// Bytes of the `${...}` at this place, with those inside it; 1 if none begins here.
  std::size_t interpolation_length() const {
    if (!std::string_view(text_).substr(position_).starts_with("${")) return 1;
    return interpolation_end(text_, position_) - position_;
  }

  std::shared_ptr<const Source> source_;
  const std::string& text_;
  std::size_t position_;
  std::optional<Escape> escape_;
  Locator locator_;
};

}  // namespace

std::optional<Node> parse_override_value(const std::shared_ptr<const Source>& source,
                                         std::size_t start, Diagnostics& diagnostics) {
  try {
    ValueParser parser(source, start);
    Node value = parser.parse();
    if (parser.escape()) {
      const auto [position, is_quoted] = *parser.escape();
      const std::string escape = source->text.substr(position, 2);
      diagnostics.warn(origin_at(source, position), "",
                       std::string(is_quoted ? "between quotes " : "in plain text ") + escape +
                           " is a backslash and the letter " + escape[1] +
                           ", as in Hydra; write a control character in a file of YAML, as " +
                           "key: \"" + escape + "\" (generate reads one by --config=FILE)" +
                           "; where the two characters are meant, single quotes within the "
                           "value say so: '" +
                           escape + "'");
    }
    return value;
  } catch (const TextDefect& defect) {
    diagnostics.add(origin_at(source, defect.position), "", defect.message);
  }
  return std::nullopt;
}

}  // namespace phalanx::config
