// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include "trainer/config/text/help.h"

namespace phalanx::config {

namespace {

/// A cell of a table: a bar would end it.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string meaning_of(const FieldEntry& field) {
  std::string text = field.meaning;
  if (!field.unit.empty()) text += " (" + field.unit + ")";
  if (field.resume_may_change) text += "; a resume may change it";
  for (const DeprecatedName& old : field.deprecated_names) text += "; formerly `" + old.name + "`";
  for (const Preset& preset : field.presets) {
    text += "<br>preset `" + preset.name + "`: " + preset.meaning;
  }
  return cell(text);
}

std::string default_of(const FieldEntry& field) {
  if (field.mandatory) return "must be given";
  return field.default_text ? "`" + cell(*field.default_text) + "`" : "";
}

/// The first part of a dotted path: a page's chapter.
std::string section_of(const FieldEntry& field) {
  const std::size_t dot = field.path.find('.');
  if (dot == std::string::npos && !field.is_section) return "";
  return field.path.substr(0, dot);
}

}  // namespace

std::string reference(std::span<const FieldEntry> fields) {
  std::string text, section = "none yet", condition;
  for (const FieldEntry& field : fields) {
    const bool new_section = section_of(field) != section;
    if (new_section) {
      section = section_of(field);
      text += section.empty() ? "\n## At the top\n" : "\n## " + section + "\n";
    }
    if (new_section || field.condition != condition) {
      condition = field.condition;
      if (!condition.empty()) text += "\n### " + condition + "\n";
      text += "\n| field | what it takes | default | meaning |\n|---|---|---|---|\n";
    }
    text += "| `" + field.path + "` | " + cell(field.type) + " | " + default_of(field) + " | " +
            meaning_of(field) + " |\n";
  }
  return text;
}

}  // namespace phalanx::config
