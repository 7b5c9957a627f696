#include "trainer/config/help.h"

#include <string_view>

#include "trainer/config/print.h"

namespace phalanx::config {

namespace {

class HelpWriter {
 public:
  void write_section(const Declaration& declaration, const Node* defaults,
                     const std::string& path) {
    for (const Field& field : declaration.fields()) {
      const std::string field_path = join_path(path, field.name);
      const Node* inherited = defaults == nullptr ? nullptr : defaults->find(field.name);
      const Node& value = inherited == nullptr ? field.default_value : *inherited;
      if (field.choice) {
        write_choice(field, field_path);
      } else if (field.type.leaf().kind == Type::Kind::section) {
        write_nested(field, value, field_path);
      } else {
        write_field(field, value, field_path);
      }
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void write(const std::string& path, const std::string& facts, std::string_view meaning) {
    text_ += path + "  (" + facts + ")\n";
    if (!meaning.empty()) text_ += "    " + std::string(meaning) + "\n";
  }

  void write_field(const Field& field, const Node& value, const std::string& path) {
    std::string facts = field.type.text();
    if (!field.unit.empty()) facts += "; in " + field.unit;
    facts += field.mandatory ? "; mandatory" : "; default " + default_text(value);
    if (field.resume_may_change) facts += "; a resume may change it";
    write(path, facts, field.meaning);
  }

  void write_nested(const Field& field, const Node& value, const std::string& path) {
    const bool is_list = field.type.kind == Type::Kind::list;
    std::string facts = field.type.text();
    if (field.mandatory) facts += "; mandatory";
    if (is_list || value.is_null()) {
      const bool own_defaults = !is_list && !field.type.nullable;
      if (!field.mandatory && !own_defaults) facts += "; default " + default_text(value);
    }
    write(path, facts, field.meaning);
    write_section(*field.type.leaf().section, value.is_map() ? &value : nullptr,
                  is_list ? path + "[]" : path);
  }

  void write_choice(const Field& field, const std::string& path) {
    const Choice& choice = *field.choice;
    std::string names;
    for (const std::string& name : choice.names()) names += (names.empty() ? "" : ", ") + name;
    std::string facts = "one of " + (names.empty() ? "none registered" : names);
    if (field.mandatory) facts += "; mandatory";
    if (!choice.default_name.empty()) facts += "; default " + choice.default_name;
    if (choice.optional) facts += "; or null";
    write(path + ".name", facts, field.meaning);
    for (const std::string& name : choice.names()) {
      const Declaration* chosen = choice.find(name);
      if (chosen == nullptr || chosen->fields().empty()) continue;
      text_ += "  with " + path + ".name: " + name + "\n";
      write_section(*chosen, nullptr, path);
    }
  }

  /// As a user would write it: an interpolation is one, so nothing is escaped.
  static std::string default_text(const Node& value) {
    return print_inline(value, {.escape_interpolation = false});
  }

  std::string text_;
};

}  // namespace

std::string help(const Declaration& declaration) {
  HelpWriter writer;
  writer.write_section(declaration, nullptr, "");
  return writer.take();
}

}  // namespace phalanx::config
