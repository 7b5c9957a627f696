#include "trainer/config/fill.h"

#include <optional>
#include <string>
#include <utility>

#include "trainer/config/check.h"
#include "trainer/config/interpolate.h"
#include "trainer/config/nearest.h"

namespace phalanx::config {

namespace {

class Filler {
 public:
  Filler(const Node& given, Diagnostics& diagnostics) : given_(given), diagnostics_(diagnostics) {}

  /// A section that is to be filled.
  struct Place {
    std::string path;
    std::string what;                ///< How messages call it.
    const Node* defaults = nullptr;  ///< Those of the struct that holds it.
    const Node* name = nullptr;      ///< Of the class that a choice picked.
  };

  void fill_section(const Declaration& declaration, Node& section, const Place& place) {
    Node filled = Node::map();
    filled.origin = section.origin;
    if (place.name != nullptr) filled.set("name", *place.name);
    for (const Entry& entry : section.entries) {
      const bool is_name = place.name != nullptr && entry.key == "name";
      if (declaration.find(entry.key) == nullptr && !is_name) {
        report_unknown_key(declaration, entry, place);
      }
    }
    for (const Field& field : declaration.fields()) {
      const Node fallback = default_of(field, place.defaults);
      Entry entry{field.name, {}, fallback};
      for (Entry& given : section.entries) {
        if (given.key == field.name) entry = std::move(given);
      }
      fill_field(field, entry.value, fallback, join_path(place.path, field.name));
      filled.entries.push_back(std::move(entry));
    }
    section = std::move(filled);
  }

 private:
  static Node default_of(const Field& field, const Node* defaults) {
    if (field.mandatory) return Node::plain("???");
    const Node* value = defaults == nullptr ? nullptr : defaults->find(field.name);
    return value == nullptr ? field.default_value : *value;
  }

  void fill_field(const Field& field, Node& value, const Node& fallback, const std::string& path) {
    if (field.choice) {
      fill_choice(field, value, path);
    } else {
      fill_value(field.type, value, fallback.is_map() ? &fallback : nullptr, path);
    }
  }

  void fill_value(const Type& type, Node& value, const Node* defaults, const std::string& path) {
    if (type.kind == Type::Kind::list && value.is_list()) {
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        fill_value(type.element.front(), value.items[i], nullptr,
                   path + "[" + std::to_string(i) + "]");
      }
    }
    if (type.kind != Type::Kind::section || value.is_missing()) return;
    if (has_interpolation(value) || (value.is_null() && type.nullable)) return;
    if (!value.is_null() && !value.is_map()) {
      report_no_section(value, path, "");
      return;
    }
    fill_section(*type.section, value, {path, "the section '" + path + "'", defaults, nullptr});
  }

  void fill_choice(const Field& field, Node& value, const std::string& path) {
    const Choice& choice = *field.choice;
    if (value.is_missing() || (value.is_null() && choice.optional)) return;
    if (value.is_list()) {
      report_no_section(value, path, ", or the name of one: " + names_text(choice));
      return;
    }
    if (value.is_scalar()) {
      Node name = std::exchange(value, Node::map());
      value.origin = name.origin;
      value.set("name", std::move(name));
    }
    Node name = name_of(choice, value, path);
    const Declaration* chosen = name.is_scalar() ? choice.find(name.text) : nullptr;
    if (chosen == nullptr) {
      if (name.is_scalar() && !name.is_missing() && !has_interpolation(name)) {
        diagnostics_.add(name.origin, join_path(path, "name"),
                         unknown_name(choice.kind, name.text, choice.names()));
      }
      value.set("name", std::move(name));
      return;
    }
    name.type = ScalarType::string;
    fill_section(*chosen, value, {path, choice.kind + " '" + name.text + "'", nullptr, &name});
  }

  /// The name that a choice's section gives, or its default, or `???`.
  Node name_of(const Choice& choice, const Node& section, const std::string& path) {
    const Node* given = section.find("name");
    if (given == nullptr) {
      return choice.default_name.empty() ? Node::plain("???") : Node::string(choice.default_name);
    }
    Node name = *given;
    if (!name.is_scalar()) {
      diagnostics_.add(
          name.origin, join_path(path, "name"),
          "found " + describe_value(name) + "; expected one of: " + names_text(choice));
    } else if (has_interpolation(name)) {
      // The class decides which defaults there are, so its name cannot refer to one.
      Node root = given_;
      Interpolator(root, diagnostics_).resolve_tree(name, join_path(path, "name"));
    }
    return name;
  }

  static std::string names_text(const Choice& choice) {
    std::string text;
    for (const std::string& name : choice.names()) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  void report_no_section(const Node& value, const std::string& path, const std::string& also) {
    diagnostics_.add(value.origin, path,
                     "found " + describe_value(value) + "; expected a section with fields" + also);
  }

  void report_unknown_key(const Declaration& declaration, const Entry& entry, const Place& place) {
    const std::vector<std::string> names = declaration.field_names();
    const std::optional<std::string> near = nearest(entry.key, names);
    std::string message = "unknown key in " + place.what;
    if (near) message += "; did you mean '" + *near + "'?";
    message += near ? " There are: " : "; there are: ";
    const char* separator = "";
    for (const std::string& name : by_nearness(entry.key, names)) {
      message += separator + name;
      separator = ", ";
    }
    if (names.empty()) message = "unknown key; " + place.what + " has no fields";
    diagnostics_.add(entry.key_origin, join_path(place.path, entry.key), std::move(message));
  }

  const Node& given_;
  Diagnostics& diagnostics_;
};

}  // namespace

void fill(const Declaration& declaration, Node& tree, Diagnostics& diagnostics) {
  const Node given = tree;
  Filler(given, diagnostics).fill_section(declaration, tree, {"", "the config"});
}

}  // namespace phalanx::config
