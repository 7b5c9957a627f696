// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::config {

/// A text that values came from. Positions point into it, and error messages quote it.
struct Source {
  enum class Kind { file, command_line, preset, program };
  Kind kind = Kind::file;
  /// The path of a file, as the user wrote it; "command line" for an override; "preset NAME";
  /// why the program has taken this value.
  std::string name;
  std::string text;  ///< The whole file, or the one argument.
};

/// Where a value or key was written. Without a source it is a default.
struct Origin {
  std::shared_ptr<const Source> source;
  int line = 0;    ///< From 1; 0: the source as a whole.
  int column = 0;  ///< From 1, in characters (code points).

  /// "configs/quickstart.yaml:12", "command line", "preset gpt2-124m" or "default".
  std::string text() const;

  /// Whether somebody wrote it, in a file or on the command line.
  bool is_written() const {
    return source &&
           (source->kind == Source::Kind::file || source->kind == Source::Kind::command_line);
  }
  bool operator==(const Origin&) const = default;
};

/// What a scalar is known to be. A parser only knows whether it was quoted; the declaration of the
/// field decides the rest.
enum class ScalarType {
  plain,    ///< Unquoted text of a file or override, not typed yet.
  string,   ///< Quoted, or declared to be text.
  boolean,  ///< "true" or "false".
  integer,  ///< Decimal, fits int64_t.
  real,     ///< As print_real writes it.
};

struct Entry;

/// A section got another name of a class (or of a preset) from a later layer: what earlier layers
/// have set in it belongs to the class that they named.
struct Renaming;

/// A value of a config: null, a scalar, a list, or a map that keeps its order.
struct Node {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  ScalarType type = ScalarType::plain;  ///< For a scalar.
  std::string text;                     ///< For a scalar.
  std::vector<Node> items;              ///< For a list.
  std::vector<Entry> entries;           ///< For a map; keys are unique.
  bool is_blank = false;                ///< For null: nothing stands where a value should.
  /// A section's renamings; for a value in one, those that came after it.
  std::vector<std::shared_ptr<const Renaming>> renamings;
  Origin origin;

  static Node null();
  static Node plain(std::string text);
  static Node string(std::string text);
  static Node boolean(bool value);
  static Node integer(std::int64_t value);
  static Node real(double value);
  static Node list();
  static Node list(std::vector<Node> items);
  static Node map();

  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_list() const { return kind == Kind::list; }
  bool is_map() const { return kind == Kind::map; }
  /// The mark `???`: a value that must be given and was not.
  bool is_missing() const;

  /// The value of a key of a map, or nullptr.
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);

  /// The value at a dotted path ("model.n_layer"), or nullptr; the empty path is the node itself.
  const Node* find_path(std::string_view path) const;

  /// Sets a key of a map (a null becomes a map first), keeping the place of one that is there.
  Node& set(std::string key, Node value);
};

/// A key of a map and its value.
struct Entry {
  std::string key;
  Origin key_origin;
  Node value;
};

struct Renaming {
  Node before;  ///< The name, a scalar.
  Node after;
};

/// "optimizer" and "lr" make "optimizer.lr".
std::string join_path(std::string_view section, std::string_view key);

/// The parts of a dotted path.
std::vector<std::string> split_path(std::string_view path);

/// Whether two trees hold the same values in the same order, whatever their origins and quotes: an
/// unquoted scalar counts as what YAML's core schema takes it for.
bool same_value(const Node& a, const Node& b);

/// What YAML's core schema takes a scalar for; known types stay.
ScalarType core_type(const Node& scalar);

}  // namespace phalanx::config
