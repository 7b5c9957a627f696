// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/tree_builder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "trainer/base/utf8.h"
#include "trainer/config/syntax/parse.h"

namespace phalanx::config {

namespace {

/// Whether a null is written here, as a value: no key of that name, nor a longer word.
bool begins_with_null(std::string_view text) {
  for (const std::string_view word : {"~", "null", "Null", "NULL"}) {
    if (!text.starts_with(word)) continue;
    const std::string_view rest = text.substr(word.size());
    const std::size_t next = rest.find_first_not_of(' ');
    return rest.empty() || next == std::string_view::npos ||
           std::string_view("\n,]}#").find(rest[next]) != std::string_view::npos;
  }
  return false;
}

/// yaml-cpp makes one byte of Latin-1 out of `\N` and `\_`; a text that was UTF-8 holds no others
/// by themselves.
std::string with_whole_characters(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) result += '\xC2';
    result += text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

/// Whether the quoted text at the start of a text ends in it. yaml-cpp takes the end of the file
/// for its end.
bool is_closed(std::string_view text) {
  const char quote = text.empty() ? '\0' : text.front();
  if (quote != '"' && quote != '\'') return true;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const bool is_escape = quote == '"' ? text[i] == '\\' : text.substr(i, 2) == "''";
    if (is_escape) {
      ++i;
    } else if (text[i] == quote) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::size_t TreeBuilder::position(const YAML::Mark& mark) const {
  return std::min(static_cast<std::size_t>(std::max(mark.pos, 0)), source_->text.size());
}

Origin TreeBuilder::origin(const YAML::Mark& mark) { return locator_.at(position(mark)); }

std::string TreeBuilder::path() const {
  std::string path;
  for (const Open& open : open_) {
    if (open.node.is_list()) {
      path += "[" + std::to_string(open.node.items.size()) + "]";
    } else if (open.key_read) {
      path = join_path(path, open.key);
    }
  }
  return path;
}

void TreeBuilder::check_tag(const YAML::Mark& mark, const std::string& tag) {
  if (tag.empty() || tag == "?" || tag == "!") return;
  diagnostics_.add(origin(mark), path(),
                   "the tag '" + tag + "' is not allowed; the type of a value is the field's");
}

void TreeBuilder::OnDocumentStart(const YAML::Mark&) { root_ = Node::null(); }

void TreeBuilder::OnNull(const YAML::Mark& mark, YAML::anchor_t) {
  const std::string& text = source_->text;
  Node node = Node::null();
  node.origin = origin(mark);
  node.is_blank = !begins_with_null(std::string_view(text).substr(position(mark)));
  // An empty value has the place of whatever comes next; what the user sees is its key, or the dash
  // of its line in a list.
  if (node.is_blank && !open_.empty() && open_.back().key_read) {
    check_colon(open_.back());
    node.origin = open_.back().key_origin;
  } else if (node.is_blank && position(mark) > 0) {
    const std::size_t before = text.find_last_not_of(" \n", position(mark) - 1);
    if (before != std::string::npos) node.origin = origin_at(source_, before);
  }
  place(std::move(node));
}

/// yaml-cpp takes a word alone on its line for a key without a value.
void TreeBuilder::check_colon(const Open& map) {
  if (!map.is_block || map.key_end == std::string::npos) return;
  const std::string& text = source_->text;
  const std::size_t next = text.find_first_not_of(" \n", map.key_end);
  if (next != std::string::npos && text[next] == ':') return;
  diagnostics_.add(map.key_origin, path(), "a ':' and a value are missing behind the key");
}

void TreeBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t) {
  const std::string_view alias = std::string_view(source_->text).substr(position(mark));
  diagnostics_.add(origin(mark), path(),
                   "an alias (" + std::string(alias.substr(0, alias.find_first_of(" \n,]}"))) +
                       ") is not allowed; write the value again, or ${a.b}");
  Node node = Node::null();
  node.origin = origin(mark);
  place(std::move(node));
}

void TreeBuilder::OnAnchor(const YAML::Mark& mark, const std::string& anchor) {
  diagnostics_.add(origin(mark), path(),
                   "an anchor (&" + anchor + ") is not allowed; refer to a value with ${a.b}");
}

void TreeBuilder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                           const std::string& value) {
  check_tag(mark, tag);
  const std::string text = with_whole_characters(unmask_interpolations(value));
  const bool quoted = tag == "!";
  if (quoted && !is_closed(std::string_view(source_->text).substr(position(mark)))) {
    throw NotClosed{origin(mark)};
  }
  Node node = quoted ? Node::string(text) : Node::plain(text);
  node.origin = origin(mark);
  const bool is_key = !open_.empty() && open_.back().node.is_map() && !open_.back().key_read;
  if (is_key && !quoted) open_.back().key_end = position(mark) + text.size();
  place(std::move(node));
}

void TreeBuilder::OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                                  YAML::EmitterStyle::value) {
  open(Node::Kind::list, mark, tag);
}

void TreeBuilder::OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                             YAML::EmitterStyle::value style) {
  open(Node::Kind::map, mark, tag);
  open_.back().is_block = style == YAML::EmitterStyle::Block;
}

void TreeBuilder::open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag) {
  if (open_.size() >= static_cast<std::size_t>(kMaxDepth)) throw TooDeep{origin(mark)};
  check_tag(mark, tag);
  Open opened;
  opened.node.kind = kind;
  opened.node.origin = origin(mark);
  open_.push_back(std::move(opened));
}

void TreeBuilder::close() {
  Node node = std::move(open_.back().node);
  open_.pop_back();
  place(std::move(node));
}

void TreeBuilder::place(Node node) {
  if (open_.empty()) {
    root_ = std::move(node);
  } else if (open_.back().node.is_list()) {
    open_.back().node.items.push_back(std::move(node));
  } else if (open_.back().key_read) {
    place_value(open_.back(), std::move(node));
  } else {
    place_key(open_.back(), node);
  }
}

void TreeBuilder::place_key(Open& map, const Node& key) {
  if (key.type == ScalarType::string || !key.is_scalar()) map.key_end = std::string::npos;
  map.key_valid = false;
  map.key.clear();
  map.key_origin = key.origin;
  if (!key.is_scalar()) {
    diagnostics_.add(key.origin, path(), "a key must be text");
  } else if (key.text == "<<" && key.type == ScalarType::plain) {
    diagnostics_.add(key.origin, path(), "a merge key (<<) is not allowed; write the fields out");
  } else {
    map.key_valid = true;
    map.key = key.text;
  }
  map.key_read = true;
}

void TreeBuilder::place_value(Open& map, Node value) {
  map.key_read = false;
  if (!map.key_valid) return;
  auto& entries = map.node.entries;
  const auto [known, is_new] = map.entry_of_key.emplace(map.key, entries.size());
  if (is_new) {
    entries.push_back({std::move(map.key), map.key_origin, std::move(value)});
    return;
  }
  const Origin& first = entries[known->second].key_origin;
  diagnostics_.add(map.key_origin, join_path(path(), map.key),
                   "the key is given twice; it was given first at " + first.text() + " column " +
                       std::to_string(first.column));
}

}  // namespace phalanx::config
