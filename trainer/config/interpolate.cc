#include "trainer/config/interpolate.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "trainer/config/nearest.h"
#include "trainer/config/source_text.h"

namespace phalanx::config {

namespace {

// References to lists of references grow exponentially; no honest config comes near this.
constexpr std::size_t kMostInserted = 1 << 20;
constexpr std::ptrdiff_t kDeepestNesting = 16;
constexpr std::size_t kLongestChain = 64;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

std::size_t closing_brace(std::string_view text, std::size_t start) {
  int depth = 0;
  for (std::size_t i = start + 1; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

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

/// The default of `${oc.env:VAR,default}` as a value.
Node default_value(std::string_view text) {
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                      text.back() == text.front();
  if (quoted) return Node::string(std::string(text.substr(1, text.size() - 2)));
  if (text == "null" || text == "~") return Node::null();
  return Node::plain(std::string(text));
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

std::nullopt_t Interpolator::report(const Place& place, std::string message) {
  Origin origin = place.node.origin;
  if (origin.source) {
    origin = interpolation_origin(origin, place.node.text, place.offset);
  } else {
    origin.source = root_.origin.source;  // a default is refused for what the user wrote elsewhere
  }
  diagnostics_.add(origin, place.path, std::move(message));
  return std::nullopt;
}

bool Interpolator::spend(const Place& place, std::size_t amount) {
  spent_ += amount;
  if (spent_ <= kMostInserted) return true;
  report(place, "interpolations insert more than 1 MiB in all");
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
  const Place place{node, path};
  if (std::find(active_.begin(), active_.end(), path) != active_.end()) {
    return report_cycle(place, path);
  }
  if (active_.size() >= kLongestChain) {
    report(place, "interpolations refer to each other in too long a chain");
    return false;
  }
  active_.push_back(path);
  std::optional<Node> value = evaluate(place, node.text, node.type);
  active_.pop_back();
  if (value && !spend(place, set_origin(*value, node.origin))) value.reset();
  if (!value) {
    failed_.insert(path);
    return false;
  }
  node = std::move(*value);
  done_.insert(path);
  return true;
}

bool Interpolator::report_cycle(const Place& place, const std::string& target) {
  std::string chain;
  for (auto it = std::find(active_.begin(), active_.end(), target); it != active_.end(); ++it) {
    chain += *it + " -> ";
  }
  report(place, "the interpolation goes round in a circle: " + chain + target);
  return false;
}

std::optional<std::vector<Interpolator::Piece>> Interpolator::split(const Place& place,
                                                                    std::string_view text) {
  std::vector<Piece> pieces(1);
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = text.find("${", i);
    std::string& literal = pieces.back().text;
    if (start == std::string_view::npos) {
      literal += text.substr(i);
      break;
    }
    // As in OmegaConf: of backslashes before `${` each pair is one, and an odd one escapes it.
    std::size_t backslashes = 0;
    while (backslashes < start - i && text[start - 1 - backslashes] == '\\') ++backslashes;
    literal += text.substr(i, start - i - backslashes);
    literal.append(backslashes / 2, '\\');
    if (backslashes % 2 == 1) {
      literal += "${";
      i = start + 2;
      continue;
    }
    const std::size_t end = closing_brace(text, start);
    if (end == std::string_view::npos) {
      return report({place.node, place.path, start}, "the interpolation ${ is not closed by }");
    }
    pieces.push_back({std::string(text.substr(start + 2, end - start - 2)), true, start});
    pieces.emplace_back();
    i = end + 1;
  }
  std::erase_if(pieces, [](const Piece& p) { return !p.is_expression && p.text.empty(); });
  return pieces;
}

std::optional<Node> Interpolator::evaluate(const Place& place, std::string_view text,
                                           ScalarType type) {
  const auto pieces = split(place, text);
  if (!pieces) return std::nullopt;
  std::string whole;
  for (const Piece& piece : *pieces) {
    if (!piece.is_expression) {
      whole += piece.text;
      continue;
    }
    const Place inner{place.node, place.path, place.offset + piece.offset};
    std::optional<Node> value = evaluate_expression(inner, piece.text);
    if (!value || pieces->size() == 1) return value;
    if (!value->is_scalar()) {
      return report(inner, "${" + piece.text + "} is no single value and cannot be part of a text");
    }
    if (!spend(inner, value->text.size())) return std::nullopt;
    whole += value->text;
  }
  Node node = Node::string(std::move(whole));
  node.type = type;
  return node;
}

std::optional<Node> Interpolator::evaluate_expression(const Place& place,
                                                      const std::string& expression) {
  std::string text = expression;
  if (text.find("${") != std::string::npos) {
    if (std::count(text.begin(), text.end(), '{') > kDeepestNesting) {
      return report(place, "the interpolations nest too deep");
    }
    const Place within{place.node, place.path, place.offset + 2};
    const std::optional<Node> inner = evaluate(within, text, ScalarType::plain);
    if (!inner) return std::nullopt;
    if (!inner->is_scalar()) return report(place, "${" + expression + "} names no path");
    text = inner->text;
  }
  const std::string_view trimmed_text = trimmed(text);
  constexpr std::string_view kEnvironment = "oc.env:";
  if (trimmed_text.starts_with(kEnvironment)) {
    return environment(place, trimmed_text.substr(kEnvironment.size()));
  }
  if (std::optional<Node> value = known_value(place, trimmed_text)) return value;
  if (const std::size_t colon = trimmed_text.find(':'); colon != std::string_view::npos) {
    return report(place, "unknown resolver '" + std::string(trimmed_text.substr(0, colon)) +
                             "'; there is oc.env: ${oc.env:VARIABLE,default}");
  }
  const std::optional<std::string> target = absolute(place, trimmed_text);
  return target ? look_up(place, *target) : std::nullopt;
}

/// `${ml.exp_name}`, and as a resolver without an argument of use, `${ml.exp_name:null}`.
std::optional<Node> Interpolator::known_value(const Place& place, std::string_view expression) {
  constexpr std::string_view kNoArgument = ":null";
  if (expression.ends_with(kNoArgument)) expression.remove_suffix(kNoArgument.size());
  const auto found = known_.find(std::string(expression));
  if (found == known_.end() || !spend(place, found->second.size())) return std::nullopt;
  return Node::string(found->second);
}

/// A path from the root; of a relative one each dot but the first leads one section up.
std::optional<std::string> Interpolator::absolute(const Place& place, std::string_view target) {
  const std::size_t dots = std::min(target.find_first_not_of('.'), target.size());
  const std::string_view rest = target.substr(dots);
  if (rest.empty() || rest.back() == '.' || rest.find("..") != std::string_view::npos) {
    return report(place, "${" + std::string(target) +
                             "} names no value; write the whole dotted path, such as "
                             "${optimizer.lr}, or ${.lr} for a field beside this one");
  }
  if (dots == 0) return std::string(rest);
  std::vector<std::string> parts = path_parts(place.path);
  if (dots > parts.size()) {
    const std::size_t around = parts.size() - 1;
    return report(place, "${" + std::string(target) + "} leads out of the config: '" + place.path +
                             "' has " + std::to_string(around) +
                             (around == 1 ? " section around it" : " sections around it"));
  }
  parts.resize(parts.size() - dots);
  std::string path;
  for (const std::string& part : parts) path = join_path(path, part);
  return join_path(path, rest);
}

std::optional<Node> Interpolator::environment(const Place& place, std::string_view arguments) {
  const std::size_t comma = arguments.find(',');
  const std::string variable(trimmed(arguments.substr(0, comma)));
  if (variable.empty()) {
    return report(place, "oc.env names no variable; write ${oc.env:VARIABLE,default}");
  }
  if (const char* value = std::getenv(variable.c_str())) {
    if (find_text_defect(value)) {
      return report(place, "the environment variable '" + variable + "' holds no UTF-8 text");
    }
    return Node::plain(value);
  }
  if (comma != std::string_view::npos) return default_value(trimmed(arguments.substr(comma + 1)));
  return report(place, "the environment variable '" + variable +
                           "' is not set; set it or give a "
                           "default: ${oc.env:" +
                           variable + ",default}");
}

std::optional<Node> Interpolator::look_up(const Place& place, const std::string& target) {
  Node* node = &root_;
  std::string path;
  bool done = false;
  for (const std::string& key : path_parts(target)) {
    if (!done && node->is_scalar() && !resolve_scalar(*node, path)) return std::nullopt;
    done = done || done_.contains(path);
    Node* next = node->is_list() ? element(*node, key) : node->find(key);
    if (next == nullptr)
      return report(place, "there is no '" + target + "'" + hint(*node, path, key));
    path = node->is_list() ? path + "[" + key + "]" : join_path(path, key);
    node = next;
  }
  if (!done && !resolve_tree(*node, path)) return std::nullopt;
  if (node->is_missing()) {
    return report(place, "'" + target + "' has no value yet; set it first");
  }
  return *node;
}

}  // namespace phalanx::config
