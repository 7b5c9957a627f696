// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/diagnostics.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <tuple>
#include <utility>

#include "trainer/base/display_width.h"
#include "trainer/base/utf8.h"
#include "trainer/base/wrap.h"

namespace phalanx::config {

namespace {

std::string line_of(const Source& source, int line) {
  std::size_t start = 0;
  for (int i = 1; i < line && start != std::string::npos; ++i) {
    start = source.text.find('\n', start);
    if (start != std::string::npos) ++start;
  }
  if (start == std::string::npos) return "";
  return source.text.substr(start, source.text.find('\n', start) - start);
}

/// The characters of a line as they are shown, one string each.
std::vector<std::string> characters(const std::string& line) {
  std::vector<std::string> result;
  for (const char c : single_line(line)) {
    if (continues_character(c)) {
      result.back() += c;
    } else {
      result.emplace_back(1, c);
    }
  }
  return result;
}

/// "  12 | lr: abc" and below it the caret; a long line is shown around the caret only.
std::string quote(const Origin& origin, std::size_t width) {
  constexpr std::size_t kFrame = 14;  // the line's number, the bar and "..." on both sides
  const std::size_t most = std::max<std::size_t>(width == 0 ? 114 : width, kFrame + 20) - kFrame;
  const std::vector<std::string> line = characters(line_of(*origin.source, origin.line));
  const std::size_t caret = std::min<std::size_t>(origin.column - 1, line.size());
  const std::size_t before = most * 6 / 10;
  const std::size_t start = caret > before + 10 ? caret - before : 0;
  const std::size_t end = std::min(line.size(), start + most);
  std::string shown = start > 0 ? "..." : "";
  std::size_t indent = shown.size();
  for (std::size_t i = start; i < caret; ++i) indent += display_width(line[i]);
  for (std::size_t i = start; i < end; ++i) shown += line[i];
  if (end < line.size()) shown += "...";

  std::string number =
      origin.source->kind == Source::Kind::file ? std::to_string(origin.line) : std::string();
  number.insert(0, number.size() < 5 ? 5 - number.size() : 0, ' ');
  return number + " | " + shown + "\n" + std::string(number.size(), ' ') + " | " +
         std::string(indent, ' ') + "^\n";
}

/// A message without what nobody would read: the rest of a value or key that is far longer than
/// any that is meant. Paths of files stay whole.
std::string shortened(std::string_view text) {
  constexpr std::size_t kLongest = 100, kShown = 60;
  std::string result;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, length);
    if (length <= kLongest || word.find('/') != std::string_view::npos) {
      result += word;
    } else {
      result += first_bytes(word, kShown);
      result += word.ends_with('\'') ? "...'" : "...";
    }
    if (length < text.size()) result += ' ';
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return result;
}

std::string without_last_line_end(std::string text) {
  text.pop_back();
  return text;
}

std::string place(const Origin& origin) {
  if (!origin.source) return "";
  const std::string column = std::to_string(origin.column);
  if (origin.source->kind == Source::Kind::command_line) {
    constexpr std::size_t kShown = 100;
    const std::string& argument = origin.source->text;
    return origin.source->name + ", argument '" + std::string(first_bytes(argument, kShown)) +
           (argument.size() > kShown ? "..." : "") + "', column " + column + ": ";
  }
  if (origin.line == 0) return origin.source->name + ": ";
  return origin.source->name + ":" + std::to_string(origin.line) + ":" + column + ": ";
}

}  // namespace

ConfigError::ConfigError(Diagnostics mistakes)
    : UserError(without_last_line_end(mistakes.text())), mistakes_(std::move(mistakes)) {}

std::string to_string(const Diagnostic& diagnostic, std::size_t width) {
  std::string text = single_line(place(diagnostic.origin));
  if (!diagnostic.path.empty()) text += shortened(single_line(diagnostic.path)) + ": ";
  text += shortened(single_line(diagnostic.message));
  if (width > 0) text = wrap(text, width, 4);
  text += "\n";
  const bool has_place = diagnostic.origin.source && diagnostic.origin.line > 0;
  return has_place ? text + quote(diagnostic.origin, width) : text;
}

void Diagnostics::add(Origin origin, std::string path, std::string message) {
  const auto known = std::find_if(all_.begin(), all_.end(), [&](const Diagnostic& old) {
    return old.path == path && old.origin == origin;
  });
  if (known != all_.end()) return;
  all_.push_back({std::move(origin), std::move(path), std::move(message)});
  if (all_.size() == kMaxMistakes) throw_if_any();
}

void Diagnostics::warn(Origin origin, std::string path, std::string message) {
  const auto known = std::find_if(warnings_.begin(), warnings_.end(), [&](const Diagnostic& old) {
    return old.path == path && old.origin == origin;
  });
  if (known != warnings_.end() || warnings_.size() == kMaxMistakes) return;
  warnings_.push_back({std::move(origin), std::move(path), std::move(message)});
}

std::string Diagnostics::text(std::size_t width) const {
  std::vector<const Source*> sources;
  std::vector<std::pair<std::tuple<bool, std::ptrdiff_t, int, int>, const Diagnostic*>> sorted;
  for (const Diagnostic& diagnostic : all_) {
    const Origin& origin = diagnostic.origin;
    auto found = std::find(sources.begin(), sources.end(), origin.source.get());
    if (found == sources.end()) found = sources.insert(sources.end(), origin.source.get());
    const bool is_argument = origin.source && origin.source->kind == Source::Kind::command_line;
    sorted.push_back(
        {{is_argument, found - sources.begin(), origin.line, origin.column}, &diagnostic});
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (const auto& [key, diagnostic] : sorted) text += to_string(*diagnostic, width);
  const std::string last = all_.size() < kMaxMistakes ? "\n" : "; there may be more\n";
  if (all_.size() > 1) text += std::to_string(all_.size()) + " mistakes in the config" + last;
  return text;
}

void Diagnostics::throw_if_any() const {
  if (empty()) return;
  throw ConfigError(*this);
}

}  // namespace phalanx::config
