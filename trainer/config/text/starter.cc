// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/text/starter.h"

#include <algorithm>
#include <string_view>

#include "trainer/base/display_width.h"
#include "trainer/base/joined.h"
#include "trainer/base/wrap.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/chosen.h"

namespace phalanx::config {

namespace {

constexpr std::size_t kWidth = 100;

/// Whether a line for the value has to be read, or shows a default only.
bool is_active(const Node& value) {
  if (value.is_missing() || value.origin.is_written()) return true;
  return std::any_of(value.entries.begin(), value.entries.end(),
                     [](const Entry& entry) { return is_active(entry.value); });
}

std::string comment_of(const Field& field) {
  std::string text = field.meaning + " (" + field.type.text();
  if (!field.unit.empty()) text += "; " + field.unit;
  return text + ")";
}

// Classes of a list without fields by their names.
Node shortened(Node value) {
  for (Node& item : value.items) item = short_form(item);
  return value;
}

std::string comment_of(const Choice& choice) {
  return choice.meaning + "; one of " + joined(choice.names());
}

class Writer {
 public:
  void section(const Declaration& declaration, const Node& section, std::size_t depth) {
    for (const Field& field : declaration.fields()) {
      const Node* value = section.find(field.name);
      if (value == nullptr) continue;
      const Declaration* inner = field.type.section;
      const Node* name = field.type.choice ? value->find("name") : nullptr;
      if (name != nullptr) inner = field.type.choice->find(name->text);
      if (!value->is_map() || (inner == nullptr && name == nullptr)) {
        const std::string comment =
            field.type.choice ? comment_of(*field.type.choice) : comment_of(field);
        line(is_active(*value), depth, field.name + ": " + print_inline(shortened(*value)),
             comment);
        continue;
      }
      line(is_active(*value), depth, field.name + ":", field.type.choice ? "" : field.meaning);
      if (name != nullptr) {
        line(is_active(*value), depth + 1, "name: " + print_inline(*name),
             comment_of(*field.type.choice));
      }
      if (inner != nullptr) this->section(*inner, *value, depth + 1);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void line(bool active, std::size_t depth, const std::string& content,
            const std::string& comment) {
    const std::string indent(2 * depth, ' ');
    const std::string begin = indent + (active ? "" : "# ") + content;
    if (comment.empty()) {
      text_ += begin + "\n";
    } else if (display_width(begin) + 4 + display_width(comment) <= kWidth) {
      text_ += begin + "  # " + comment + "\n";
    } else {
      std::string above = wrap(comment, kWidth - indent.size() - 2);
      for (std::size_t end = 0; (end = above.find('\n', end)) != std::string::npos; end += 3) {
        above.replace(end, 1, "\n" + indent + "# ");
        end += indent.size();
      }
      text_ += indent + "# " + above + "\n" + begin + "\n";
    }
  }

  std::string text_;
};

}  // namespace

std::string starter(const Declaration& declaration, const Node& filled) {
  Writer writer;
  writer.section(declaration, filled, 0);
  return writer.take();
}

}  // namespace phalanx::config
