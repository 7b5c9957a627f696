// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/interpolate.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "trainer/base/nearest.h"
#include "trainer/config/syntax/source_text.h"

namespace phalanx::config {

namespace {

// References to lists of references grow exponentially; no honest config comes near this.
constexpr std::size_t kMaxInserted = 1 << 20;
constexpr std::size_t kLongestChain = 64;

std::size_t set_origin(Node& node, const Origin& origin) {
  std::size_t size = 1 + node.text.size();
  node.origin = origin;
  for (Node& item : node.items) size += set_origin(item, origin);
  for (Entry& entry : node.entries) {
    entry.key_origin = origin;
    size += entry.key.size() + set_origin(entry.value, origin);
  }
  return size;
}

/// The keys and numbers of a path: "a.b[2].c" and "a.b.2.c" are a, b, 2, c.
std::vector<std::string> path_parts(std::string_view path) {
  std::vector<std::string> parts(1);
  for (const char c : path) {
    if (c == '.' || c == '[') {
      parts.emplace_back();
    } else if (c != ']') {
      parts.back() += c;
    }
  }
  return parts;
}

/// Whether each bracket of a path is closed before the next part.
bool closes_brackets(std::string_view path) {
  std::size_t open = path.find('[');
  while (open != std::string_view::npos) {
    const std::size_t next = path.find_first_of(".[]", open + 1);
    if (next == std::string_view::npos || path[next] != ']') return false;
    open = path.find('[', next);
  }
  return true;
}

/// `null` in any letters, as in overrides, or `~`.
bool is_null_word(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text == "null" || text == "~";
}

/// The element of a list that a text numbers, or nullptr.
Node* element(Node& list, std::string_view number) {
  std::size_t index = 0;
  const char* const end = number.data() + number.size();
  const auto parsed = std::from_chars(number.data(), end, index);
  if (parsed.ec != std::errc() || parsed.ptr != end || index >= list.items.size()) return nullptr;
  return &list.items[index];
}

std::vector<std::string> keys_of(const Node& node) {
  std::vector<std::string> keys;
  for (const Entry& entry : node.entries) keys.push_back(entry.key);
  return keys;
}

bool is_like_a_variable(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// What there is where a key leads nowhere.
std::string hint(const Node& node, const std::string& path, const std::string& key) {
  if (node.is_list()) {
    return "; '" + path + "' has " + std::to_string(node.items.size()) +
           " elements, numbered from 0";
  }
  if (path.empty() && is_like_a_variable(key)) {
    return "; an environment variable is ${oc.env:" + key + "}";
  }
  const std::optional<std::string> near = nearest(key, keys_of(node));
  return near ? "; did you mean '" + join_path(path, *near) + "'?" : "";
}

}  // namespace

bool has_interpolation(const Node& node) {
  return node.is_scalar() && node.text.find("${") != std::string::npos;
}

std::nullopt_t Interpolator::report(const Site& site, std::string message) {
  Origin origin = site.node.origin;
  if (origin.source) {
    origin = interpolation_origin(origin, site.node.text, site.offset);
  } else {
    origin.source = root_.origin.source;  // a default is refused for what the user wrote elsewhere
  }
  diagnostics_.add(origin, site.path, std::move(message));
  return std::nullopt;
}

bool Interpolator::spend(const Site& site, std::size_t amount) {
  spent_ += amount;
  if (spent_ <= kMaxInserted) return true;
  report(site, "interpolations insert more than 1 MiB in all");
  return false;
}

bool Interpolator::resolve_tree(Node& node, const std::string& path) {
  if (done_.contains(path)) return true;
  if (node.is_scalar()) return resolve_scalar(node, path);
  bool all = true;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    all &= resolve_tree(node.items[i], path + "[" + std::to_string(i) + "]");
  }
  for (Entry& entry : node.entries) all &= resolve_tree(entry.value, join_path(path, entry.key));
  return all;
}

bool Interpolator::resolve_scalar(Node& node, const std::string& path) {
  if (!has_interpolation(node)) return true;
  if (failed_.contains(path)) return false;
  const Site site{node, path};
  if (std::find(active_.begin(), active_.end(), path) != active_.end()) {
    return report_cycle(site, path);
  }
  if (active_.size() >= kLongestChain) {
    report(site, "interpolations refer to each other in too long a chain");
    return false;
  }
  active_.push_back(path);
  std::optional<Node> value = evaluate(site);
  active_.pop_back();
  if (value && !spend(site, set_origin(*value, node.origin))) value.reset();
  if (!value) {
    failed_.insert(path);
    return false;
  }
  node = std::move(*value);
  done_.insert(path);
  return true;
}

bool Interpolator::report_cycle(const Site& site, const std::string& target) {
  std::string chain;
  for (auto it = std::find(active_.begin(), active_.end(), target); it != active_.end(); ++it) {
    chain += *it + " -> ";
  }
  report(site, "the interpolation goes round in a circle: " + chain + target);
  return false;
}

std::optional<Node> Interpolator::evaluate(const Site& site) {
  try {
    return evaluate(site, parse_interpolated(site.node.text), site.node.type);
  } catch (const TextDefect& defect) {
    return report({site.node, site.path, defect.position}, defect.message);
  }
}

/// Alone, an interpolation keeps its type; within text it becomes a part of that.
std::optional<Node> Interpolator::evaluate(const Site& site, const InterpolatedText& text,
                                           ScalarType type) {
  if (text.size() == 1 && !text[0].interpolation.empty()) {
    return evaluate(site, text[0].interpolation[0]);
  }
  std::optional<std::string> whole = evaluate_text(site, text, "a text");
  if (!whole) return std::nullopt;
  Node node = Node::string(std::move(*whole));
  node.type = type;
  return node;
}

std::optional<std::string> Interpolator::evaluate_text(const Site& site,
                                                       const InterpolatedText& text,
                                                       std::string_view what) {
  std::string whole;
  for (const TextPart& part : text) {
    whole += part.literal;
    for (const Interpolation& inner : part.interpolation) {
      const std::optional<Node> value = evaluate(site, inner);
      if (!value) return std::nullopt;
      const Site there{site.node, site.path, inner.begin, inner.end};
      if (!value->is_scalar()) {
        return report(there, there.written() + " is no single value and cannot be part of " +
                                 std::string(what));
      }
      if (!spend(there, value->text.size())) return std::nullopt;
      whole += value->text;
    }
  }
  return whole;
}

std::optional<Node> Interpolator::evaluate(const Site& around, const Interpolation& interpolation) {
  const Site site{around.node, around.path, interpolation.begin, interpolation.end};
  if (interpolation.resolver) return resolver(site, interpolation);
  const std::optional<std::string> path = evaluate_text(site, interpolation.path, "a path");
  if (!path) return std::nullopt;
  if (std::optional<Node> value = known_value(site, *path)) return value;
  const std::optional<std::string> target = absolute(site, *path);
  return target ? look_up(site, *target) : std::nullopt;
}

std::optional<Node> Interpolator::resolver(const Site& site, const Interpolation& interpolation) {
  if (interpolation.resolver == kEnvironmentResolver) return environment(site, interpolation);
  // As a resolver without an argument of use: ${ml.exp_name:null}.
  if (site.written().ends_with(":null}")) {
    if (std::optional<Node> value = known_value(site, *interpolation.resolver)) return value;
  }
  return report(site, "unknown resolver '" + *interpolation.resolver +
                          "'; there is oc.env: ${oc.env:VARIABLE,default}");
}

std::optional<Node> Interpolator::known_value(const Site& site, const std::string& name) {
  const auto found = known_.find(name);
  if (found == known_.end() || !spend(site, found->second.size())) return std::nullopt;
  return Node::string(found->second);
}

/// A path from the root; of a relative one each dot but the first leads one section up.
std::optional<std::string> Interpolator::absolute(const Site& site, std::string_view target) {
  const std::size_t dots = std::min(target.find_first_not_of('.'), target.size());
  const std::string_view rest = target.substr(dots);
  if (rest.empty() || rest.back() == '.' || rest.find("..") != std::string_view::npos) {
    return report(site, "${" + std::string(target) +
                            "} names no value; write the whole dotted path, such as "
                            "${optimizer.lr}, or ${.lr} for a field beside this one");
  }
  if (dots == 0) return std::string(rest);
  std::vector<std::string> parts = path_parts(site.path);
  if (dots > parts.size()) {
    const std::size_t around = parts.size() - 1;
    return report(site, "${" + std::string(target) + "} leads out of the config: '" + site.path +
                            "' has " + std::to_string(around) +
                            (around == 1 ? " section around it" : " sections around it"));
  }
  parts.resize(parts.size() - dots);
  std::string path;
  for (const std::string& part : parts) path = join_path(path, part);
  return join_path(path, rest);
}

std::optional<Node> Interpolator::environment(const Site& site,
                                              const Interpolation& interpolation) {
  const auto& arguments = interpolation.arguments;
  if (arguments.size() > 2) {
    return report(site,
                  "oc.env takes a variable and one default; quote a default with a comma: "
                  "${oc.env:VARIABLE,'a, b'}");
  }
  const auto name = evaluate_text(site, arguments[0].text, "a variable's name");
  if (!name) return std::nullopt;
  // The default is evaluated in any case: a mistake in it does not wait for the variable to go.
  std::optional<Node> fallback;
  if (arguments.size() == 2 && !(fallback = argument(site, arguments[1]))) return std::nullopt;
  if (name->empty()) {
    return report(site, "oc.env names no variable; write ${oc.env:VARIABLE,default}");
  }
  if (const char* value = std::getenv(name->c_str())) {
    if (find_text_defect(value)) {
      return report(site, "the environment variable '" + *name + "' holds no UTF-8 text");
    }
    return Node::plain(value);
  }
  if (fallback) return fallback;
  return report(site, "the environment variable '" + *name +
                          "' is not set; set it or give a default: ${oc.env:" + *name +
                          ",default}");
}

/// A default: text, what it looks like, or the value of the interpolation that is all of it.
std::optional<Node> Interpolator::argument(const Site& site,
                                           const InterpolationArgument& argument) {
  const InterpolatedText& text = argument.text;
  if (!argument.is_quoted && text.size() == 1 && !text[0].interpolation.empty()) {
    const Interpolation& inner = text[0].interpolation[0];
    std::optional<Node> value = evaluate(site, inner);
    if (value && !value->is_scalar() && !value->is_null()) {
      const Site there{site.node, site.path, inner.begin, inner.end};
      return report(there, there.written() + " is no single value and cannot be a default");
    }
    return value;
  }
  std::optional<std::string> whole = evaluate_text(site, text, "a text");
  if (!whole) return std::nullopt;
  if (argument.is_quoted) return Node::string(std::move(*whole));
  return is_null_word(*whole) ? Node::null() : Node::plain(std::move(*whole));
}

std::optional<Node> Interpolator::look_up(const Site& site, const std::string& target) {
  if (!closes_brackets(target)) {
    return report(site, "a bracket of '" + target + "' is not closed");
  }
  Node* node = &root_;
  std::string path;
  bool done = false;
  for (const std::string& key : path_parts(target)) {
    if (!done && node->is_scalar() && !resolve_scalar(*node, path)) return std::nullopt;
    done = done || done_.contains(path);
    Node* next = node->is_list() ? element(*node, key) : node->find(key);
    if (next == nullptr)
      return report(site, "there is no '" + target + "'" + hint(*node, path, key));
    path = node->is_list() ? path + "[" + key + "]" : join_path(path, key);
    node = next;
  }
  if (!done && !resolve_tree(*node, path)) return std::nullopt;
  if (node->is_missing()) {
    return report(site, "'" + target + "' has no value yet; set it first");
  }
  return *node;
}

}  // namespace phalanx::config
