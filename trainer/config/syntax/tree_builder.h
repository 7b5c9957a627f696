// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/config/syntax/source_text.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// Makes a tree of our own from yaml-cpp's events, where yaml-cpp's own tree would lose positions
/// and accept duplicate keys, anchors and tags: those go to `diagnostics`.
class TreeBuilder : public YAML::EventHandler {
 public:
  /// Thrown when lists and maps nest deeper than kMaxDepth.
  struct TooDeep {
    Origin origin;
  };
  /// A quoted text that goes on to the end of the document: what it has swallowed is not known.
  struct NotClosed {
    Origin origin;
  };

  TreeBuilder(std::shared_ptr<const Source> source, Diagnostics& diagnostics)
      : source_(source), locator_(std::move(source)), diagnostics_(diagnostics) {}

  /// The tree of the document that was handled.
  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override;
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override;
  void OnMapEnd() override { close(); }
  void OnAnchor(const YAML::Mark& mark, const std::string& anchor) override;

 private:
  /// A list or map that is being filled.
  struct Open {
    Node node;
    bool key_read = false;  ///< In a map: the next node is a value.
    bool key_valid = false;
    std::string key;
    Origin key_origin;
    bool is_block = false;                    ///< In a map: its entries have lines of their own.
    std::size_t key_end = std::string::npos;  ///< In the text, where the key is known to end.
    std::unordered_map<std::string, std::size_t> entry_of_key;
  };

  Origin origin(const YAML::Mark& mark);
  std::size_t position(const YAML::Mark& mark) const;
  std::string path() const;
  void check_colon(const Open& map);
  void check_tag(const YAML::Mark& mark, const std::string& tag);
  void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag);
  void close();
  void place(Node node);
  void place_key(Open& map, const Node& key);
  void place_value(Open& map, Node value);

  std::shared_ptr<const Source> source_;
  Locator locator_;
  Diagnostics& diagnostics_;
  std::vector<Open> open_;
  Node root_;
};

}  // namespace phalanx::config
