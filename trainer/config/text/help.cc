// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/text/help.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "trainer/base/joined.h"
#include "trainer/base/nearest.h"
#include "trainer/base/user_error.h"
#include "trainer/base/wrap.h"
#include "trainer/config/syntax/print.h"

namespace phalanx::config {

namespace {

constexpr std::size_t kIndent = 4;

class HelpWriter {
 public:
  explicit HelpWriter(const HelpOptions& options) : options_(options) {}

  void write(const FieldEntry& field) {
    if (field.condition != condition_) {
      condition_ = field.condition;
      if (!condition_.empty()) text_ += "  with " + condition_ + "\n";
    }
    // Styled after wrapping, which counts characters.
    std::string line = wrap(field.path + "  (" + field.facts() + ")", options_.width, kIndent);
    text_ += styled("1", line.substr(0, field.path.size())) + line.substr(field.path.size()) + "\n";
    if (!field.meaning.empty()) paragraph(field.meaning);
    for (const Preset& preset : field.presets) {
      paragraph("preset " + preset.name + ": " + preset.meaning);
    }
  }

  void paragraph(const std::string& text) {
    text_ += wrap(std::string(kIndent, ' ') + text, options_.width, kIndent) + "\n";
  }

  std::string take() { return std::move(text_); }

 private:
  std::string styled(std::string_view style, const std::string& text) const {
    return options_.colour ? "\033[" + std::string(style) + "m" + text + "\033[0m" : text;
  }

  const HelpOptions& options_;
  std::string condition_;
  std::string text_;
};

/// The path of a field that had this one once, or empty.
std::string former_path(std::span<const FieldEntry> fields, const std::string& path) {
  for (const FieldEntry& field : fields) {
    const std::size_t dot = field.path.rfind('.');
    const std::string section = dot == std::string::npos ? "" : field.path.substr(0, dot);
    for (const DeprecatedName& old : field.deprecated_names) {
      if (join_path(section, old.name) == path) return field.path;
    }
  }
  return "";
}

/// Whether a config has chosen another class than the one that has this field. An element of a list
/// or map may be of any class.
bool is_of_another_class(const FieldEntry& field, const Node& resolved) {
  const std::size_t end = field.condition.find(": ");
  if (end == std::string::npos) return false;
  const Node* name = resolved.find_path(field.condition.substr(0, end));
  return name != nullptr && name->text != field.condition.substr(end + 2);
}

/// The map that has a value of this path, by a name of the user's; null: none.
const FieldEntry* map_of(std::span<const FieldEntry> fields, const std::string& path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot + 1 == path.size()) return nullptr;
  const auto found = std::ranges::find_if(fields, [&](const FieldEntry& field) {
    return field.is_map && field.path == path.substr(0, dot);
  });
  return found == fields.end() ? nullptr : &*found;
}

/// The last name of a path.
std::string last_name(const std::string& path) { return path.substr(path.rfind('.') + 1); }

/// "; did you mean 'optimizer.lr'?" of "lr": the fields whose last name it is, or empty.
std::string question_of_last_name(std::span<const FieldEntry> fields, const std::string& name) {
  std::vector<std::string> paths;
  for (const FieldEntry& field : fields) {
    const bool is_new = std::ranges::find(paths, field.path) == paths.end();
    if (is_new && field.path != name && last_name(field.path) == name) paths.push_back(field.path);
  }
  if (paths.empty()) return "";
  constexpr std::size_t kFew = 3;
  const std::size_t all = paths.size();
  paths.resize(std::min(all, kFew));
  return "; did you mean '" + joined(paths, "' or '") +
         (all > kFew ? "', or another of " + std::to_string(all) + "?" : "'?");
}

/// What may be meant by a path that no field has: the end of a sentence, or empty.
std::string question_of_path(std::span<const FieldEntry> fields, const std::string& path) {
  if (const std::string question = question_of_last_name(fields, path); !question.empty()) {
    return question;
  }
  const auto takes_it = std::ranges::find_if(fields, [&](const FieldEntry& field) {
    return std::ranges::find(field.values, path) != field.values.end();
  });
  if (takes_it != fields.end()) {
    return "; '" + path + "' is a value of '" + takes_it->path + "', which explain takes;";
  }
  std::vector<std::string> paths, names;
  for (const FieldEntry& field : fields) {
    paths.push_back(field.path);
    names.push_back(last_name(field.path));
  }
  if (const auto near = nearest(path, paths)) return "; did you mean '" + *near + "'?";
  const auto near = path.find('.') == std::string::npos ? nearest(path, names) : std::nullopt;
  return near ? question_of_last_name(fields, *near) : "";
}

[[noreturn]] void refuse_path(std::span<const FieldEntry> fields, const std::string& path,
                              ExplainKey explain_key) {
  const std::string explained = explain_key == nullptr ? "" : explain_key(path).text;
  if (!explained.empty()) throw UserError("there is no field '" + path + "'; " + explained);
  const std::string question = question_of_path(fields, path);
  throw UserError("there is no field '" + path + "'" + (question.empty() ? ";" : question) +
                  " `trainer train --help` names them all");
}

}  // namespace

std::string help(std::span<const FieldEntry> fields, const HelpOptions& options) {
  HelpWriter writer(options);
  for (const FieldEntry& field : fields) writer.write(field);
  return writer.take();
}

std::string explain(const Declaration& declaration, const std::string& path, const Node* resolved,
                    const HelpOptions& options) {
  const std::vector<FieldEntry> fields = field_entries(declaration, path);
  std::string wanted = path;
  if (const std::string today = former_path(fields, path); !today.empty()) wanted = today;
  HelpWriter writer(options);
  bool found = false;
  std::set<std::string> other_classes;
  const auto write_value = [&](const std::string& of) {
    const Node* value = resolved == nullptr ? nullptr : resolved->find_path(of);
    if (value == nullptr || value->is_map()) return;
    writer.paragraph("here " + print_inline(*value) + "  # " + value->origin.text());
  };
  for (const FieldEntry& field : fields) {
    const bool names_section = field.path == wanted + ".name";
    if (!is_at_or_below(field.path, wanted) && !names_section) continue;
    if (resolved != nullptr && is_of_another_class(field, *resolved)) {
      other_classes.insert(field.condition);
      continue;
    }
    found = true;
    writer.write(field);
    write_value(field.path);
  }
  if (const FieldEntry* const map = found ? nullptr : map_of(fields, wanted)) {
    found = true;
    writer.write(*map);
    write_value(wanted);
  }
  if (!found && !other_classes.empty()) {
    throw UserError("this config has no field '" + path + "': it belongs to " +
                    joined(other_classes, " or to ") + "; explain shows it without a config");
  }
  if (!found) refuse_path(fields, path, options.explain_key);
  return writer.take();
}

}  // namespace phalanx::config
