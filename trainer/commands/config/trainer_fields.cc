// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/config/trainer_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "trainer/base/wrap.h"
#include "trainer/commands/config/trainer_order.h"
#include "trainer/config/text/help.h"
#include "trainer/config/tree/fields.h"
#include "trainer/registry/trainers.h"

namespace phalanx {
namespace {

using Fields = std::vector<config::FieldEntry>;

// All that help says of a field.
std::string identity(const config::FieldEntry& field) {
  return fmt::format("{}\n{}\n{}\n{}", field.path, field.condition, field.facts(), field.meaning);
}

// Those fields of `fields` that are not in `known`.
Fields without(const Fields& fields, const Fields& known) {
  std::set<std::string> identities;
  for (const auto& field : known) identities.insert(identity(field));
  Fields rest;
  std::copy_if(fields.begin(), fields.end(), std::back_inserter(rest),
               [&](const auto& field) { return !identities.contains(identity(field)); });
  return rest;
}

std::string help(const Fields& fields, const TextStyle& style) {
  return config::help(fields, {.width = style.width, .colour = style.colour});
}

// The sections of fields, once each: "parallel" of "parallel.ddp.bucket_size".
std::vector<std::string> sections(const Fields& fields) {
  std::vector<std::string> sections;
  for (const auto& field : fields) {
    const std::string section = field.path.substr(0, field.path.find('.'));
    if (sections.empty() || sections.back() != section) sections.push_back(section);
  }
  return sections;
}

// The first trainer is told in full, another one by what sets it off.
std::string introduction(const std::string& name, const Fields& more, const Fields& fewer) {
  std::string text = fmt::format("fields of a config for the trainer '{}': those above", name);
  if (!fewer.empty()) text += fmt::format(" except {}", fmt::join(sections(fewer), ", "));
  if (!more.empty()) text += ", and";
  return text + (more.empty() ? "" : ":");
}

}  // namespace

std::string fields_of_trainers(const TextStyle& style) {
  const auto& registry = TrainerRegistry::instance();
  std::string text;
  Fields first;
  for (const auto& name : ordered_trainers()) {
    const Fields fields = config::field_entries(registry.at(name).declaration());
    if (text.empty()) {
      first = fields;
      text = style.heading(fmt::format("fields of a config for the trainer '{}':", name)) + "\n" +
             help(fields, style);
      continue;
    }
    const Fields more = without(fields, first);
    const std::string line = introduction(name, more, without(first, fields));
    text += "\n" + style.heading(style.width > 0 ? config::wrap(line, style.width) : line) + "\n" +
            help(more, style);
  }
  return text;
}

}  // namespace phalanx
