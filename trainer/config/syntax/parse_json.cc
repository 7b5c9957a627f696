// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/parse_json.h"

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"

namespace phalanx::config {
namespace {

/// Builds the tree as the text is read, without recursion, so that a hostile text cannot take the
/// stack.
class TreeReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TreeReader(const std::string& name)
      : origin_{.source = std::make_shared<const Source>(Source{Source::Kind::file, name, ""})} {}

  Node take() { return std::move(root_); }

  bool null() override { return add(Node::null()); }
  bool boolean(bool value) override { return add(Node::boolean(value)); }
  bool number_integer(number_integer_t value) override { return add(Node::integer(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto kMax = static_cast<number_unsigned_t>(std::numeric_limits<int64_t>::max());
    return add(value <= kMax ? Node::integer(static_cast<int64_t>(value))
                             : Node::real(static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return add(Node::real(value));
  }
  bool string(string_t& text) override { return add(Node::string(text)); }
  bool binary(binary_t&) override { fail("binary data"); }

  bool start_object(std::size_t) override { return open(Node::map()); }
  bool start_array(std::size_t) override { return open(Node::list()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& text) override {
    Level& level = levels_.back();
    if (!level.keys.insert(text).second) fail("the key '" + text + "' appears twice");
    level.key = text;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    fail("it is no JSON: see its byte " + std::to_string(position));
  }

 private:
  /// A map or list that is still open.
  struct Level {
    Node node;
    std::string key{};  ///< In a map: the key whose value comes next.
    std::unordered_set<std::string> keys{};
  };

  [[noreturn]] void fail(const std::string& problem) const {
    throw UserError("'" + origin_.source->name + "' cannot be read: " + problem);
  }

  bool open(Node node) {
    if (levels_.size() >= static_cast<std::size_t>(kMaxDepth)) {
      fail("its values are nested too deeply");
    }
    levels_.push_back({.node = std::move(node)});
    return true;
  }

  bool close() {
    Node node = std::move(levels_.back().node);
    levels_.pop_back();
    return add(std::move(node));
  }

  bool add(Node node) {
    node.origin = origin_;
    if (levels_.empty()) {
      root_ = std::move(node);
    } else if (Level& level = levels_.back(); level.node.is_map()) {
      level.node.entries.push_back(
          {.key = std::move(level.key), .key_origin = origin_, .value = std::move(node)});
    } else {
      level.node.items.push_back(std::move(node));
    }
    return true;
  }

  Origin origin_;
  std::vector<Level> levels_;
  Node root_;
};

}  // namespace

Node parse_json(std::string_view text, const std::string& name) {
  TreeReader reader(name);
  // The library takes a zero byte for the end of its input.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw UserError("'" + name + "' cannot be read: its byte " + std::to_string(zero + 1) +
                    " is zero");
  }
  nlohmann::json::sax_parse(text, &reader);
  return reader.take();
}

}  // namespace phalanx::config
