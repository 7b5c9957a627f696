// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/older_runs.h"

#include <string_view>

namespace phalanx::config {
namespace {

void add_fields(const Declaration& declaration, const Node& section, const std::string& path,
                std::vector<std::string>& found) {
  for (const Field& field : declaration.fields()) {
    const Node* value = section.find(field.name);
    const std::string of_field = join_path(path, field.name);
    if (value == nullptr && field.older_runs_have_none) found.push_back(of_field);
    if (value == nullptr || !value->is_map()) continue;
    const Declaration* inner = section_of(field.type, *value);
    if (inner != nullptr) add_fields(*inner, *value, of_field, found);
  }
}

}  // namespace

std::vector<std::string> fields_without_value(const Declaration& declaration, const Node& kept) {
  std::vector<std::string> found;
  add_fields(declaration, kept, "", found);
  return found;
}

void leave_without_value(Node& tree, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    Node* section = &tree;
    std::vector<std::string> keys = split_path(path);
    const std::string last = keys.back();
    keys.pop_back();
    for (const std::string& key : keys) {
      section = section->is_map() ? section->find(key) : nullptr;
      if (section == nullptr) break;
    }
    if (section == nullptr || !section->is_map() || section->find(last) != nullptr) continue;
    section->set(last, Node::null());
  }
}

}  // namespace phalanx::config
