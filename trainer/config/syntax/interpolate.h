// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/syntax/interpolation.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// Values that the program lends to interpolations, by name: "ml.exp_name".
using KnownValues = std::map<std::string, std::string>;

/// Replaces the interpolations of a tree in place: `${a.b}` and `${a.list[0]}` by their paths,
/// `${.b}` and `${..b}` relative to the section that they stand in or the one around it,
/// `${oc.env:VAR}` and `${oc.env:VAR,default}`, a known value by its name, and `\${` for a literal
/// `${`. They may nest. A replaced value keeps the origin of the interpolation.
class Interpolator {
 public:
  /// All are borrowed; paths are looked up from `root`.
  Interpolator(Node& root, Diagnostics& diagnostics, const KnownValues& known)
      : root_(root), diagnostics_(diagnostics), known_(known) {}

  /// Replaces all interpolations below the root.
  void resolve_all() { resolve_tree(root_, ""); }

  /// Replaces those in `node`, which stands at `path`. False: reported to the diagnostics.
  bool resolve_tree(Node& node, const std::string& path);

  /// Paths whose value could not be found: there is nothing else to say about them.
  const std::set<std::string>& failed() const { return failed_; }

 private:
  /// The scalar that is being resolved, and the bytes of the interpolation in it.
  struct Site {
    const Node& node;
    const std::string& path;
    std::size_t offset = 0;
    std::size_t end = 0;

    /// The interpolation as it is written.
    std::string written() const { return node.text.substr(offset, end - offset); }
  };

  bool resolve_scalar(Node& node, const std::string& path);
  std::optional<Node> evaluate(const Site& site);
  std::optional<Node> evaluate(const Site& site, const InterpolatedText& text, ScalarType type);
  std::optional<std::string> evaluate_text(const Site& site, const InterpolatedText& text,
                                           std::string_view what);
  std::optional<Node> evaluate(const Site& around, const Interpolation& interpolation);
  std::optional<Node> resolver(const Site& site, const Interpolation& interpolation);
  std::optional<Node> environment(const Site& site, const Interpolation& interpolation);
  std::optional<Node> argument(const Site& site, const InterpolationArgument& argument);
  std::optional<Node> known_value(const Site& site, const std::string& name);
  std::optional<std::string> absolute(const Site& site, std::string_view target);
  std::optional<Node> look_up(const Site& site, const std::string& target);
  bool spend(const Site& site, std::size_t amount);
  bool report_cycle(const Site& site, const std::string& target);
  std::nullopt_t report(const Site& site, std::string message);

  Node& root_;
  Diagnostics& diagnostics_;
  const KnownValues& known_;
  std::vector<std::string> active_;  ///< Paths being resolved, outermost first.
  std::set<std::string> done_;
  std::set<std::string> failed_;
  std::size_t spent_ = 0;  ///< Bytes and nodes inserted so far.
};

/// Whether a scalar holds an interpolation or an escaped one.
bool has_interpolation(const Node& node);

}  // namespace phalanx::config
