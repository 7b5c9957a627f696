// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/optimizer_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/config/tree/scalar.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/grouped_optimizer.h"
#include "trainer/optim/limits.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

using config::Declaration;
using config::Field;
using config::Node;

constexpr const char* kGroups = "groups";
constexpr const char* kLr = "lr";
constexpr const char* kWeightDecay = "weight_decay";

/// What a group says beside the fields of the optimizer's class.
struct GroupFields {
  std::vector<std::string> parameters;
  double lr_scale = 1;

  static void describe(config::Schema<GroupFields>& s) {
    s.field("parameters", &GroupFields::parameters,
            "names of parameters; *, ? and [...] stand for letters. The first group that matches "
            "a parameter counts")
        .mandatory();
    s.field("lr_scale", &GroupFields::lr_scale, "what the learning rate is multiplied by")
        .in_range(0, kLargestFactor);
    s.check([](const GroupFields& c) -> std::optional<std::string> {
      if (!c.parameters.empty()) return std::nullopt;
      return "parameters names none";
    });
  }
};

/// What every optimizer's section says beside its groups.
struct SharedFields {
  std::vector<std::string> freeze;
  double layer_lr_decay = 1;

  static void describe(config::Schema<SharedFields>& s) {
    s.field("freeze", &SharedFields::freeze,
            "names of parameters that stay as they are; *, ? and [...] stand for letters");
    s.field("layer_lr_decay", &SharedFields::layer_lr_decay,
            "what the learning rate is multiplied by from one unit of the model to the one below "
            "it; 1 above the last unit")
        .greater_than(0)
        .at_most(1)
        .resume_may_change();
  }
};

// A field of another section, which no struct is filled from here.
Field without_struct(Field field) {
  field.load = nullptr;
  field.store = nullptr;
  return field;
}

Declaration group_declaration(const Declaration& own) {
  Declaration group("a group of " + own.name());
  for (const Field& field : config::declaration<GroupFields>().fields()) {
    group.add_field(without_struct(field));
  }
  for (const Declaration::Check& check : config::declaration<GroupFields>().checks()) {
    group.add_check(check);
  }
  for (Field field : own.fields()) {
    if (field.type.leaf().kind == config::Type::Kind::section) continue;
    field = without_struct(std::move(field));
    field.type.nullable = true;
    field.mandatory = false;
    field.default_value = field.type.no_value();
    group.add_field(std::move(field));
  }
  return group;
}

// The section with a group's own values in the place of its.
Node with_group(const Node& section, const Declaration& own, const Node& group) {
  Node result = section;
  for (const Field& field : own.fields()) {
    const Node* value = group.find(field.name);
    if (value != nullptr && !field.type.is_no_value(*value)) result.set(field.name, *value);
  }
  return result;
}

const std::vector<Node>& groups_in(const Node& section) {
  static const std::vector<Node> none;
  const Node* groups = section.find(kGroups);
  return groups == nullptr ? none : groups->items;
}

// What the class checks across its fields holds for each group too.
std::optional<std::string> wrong_group(const Declaration& own, const Node& section) {
  const std::vector<Node>& groups = groups_in(section);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Node whole = with_group(section, own, groups[i]);
    for (const Declaration::Check& check : own.checks()) {
      if (const auto problem = check(whole)) return fmt::format("groups[{}]: {}", i, *problem);
    }
  }
  return std::nullopt;
}

/// A class's fields and the shared ones; `group` is what the field `groups` refers to.
struct WithGroups {
  explicit WithGroups(const Declaration& own) : group(group_declaration(own)), whole(own) {
    Field groups;
    groups.name = kGroups;
    groups.meaning =
        "parameters with fields of their own; what a group leaves out is as for the others";
    groups.type.kind = config::Type::Kind::list;
    config::Type element;
    element.kind = config::Type::Kind::section;
    element.section = &group;
    groups.type.element.push_back(std::move(element));
    groups.default_value = Node::list();
    groups.resume_may_change = true;
    whole.add_field(std::move(groups));
    for (const Field& field : config::declaration<SharedFields>().fields()) {
      whole.add_field(without_struct(field));
    }
    whole.add_check([&own](const Node& section) { return wrong_group(own, section); });
  }
  WithGroups(const WithGroups&) = delete;
  WithGroups& operator=(const WithGroups&) = delete;

  Declaration group;
  Declaration whole;
};

const ClassEntry<Optimizer>& entry_of(const Node& section) {
  return Registry<Optimizer>::instance().at(section.find("name")->text);
}

// "optimizer.freeze (mine.yaml:12)"
std::string place_of(std::string field, const Node& value) {
  return value.origin.is_written() ? fmt::format("{} ({})", field, value.origin.text())
                                   : std::move(field);
}

// A section's values of the field `name`, and of those that end with it: adamw_lr.
NamedValues values_of(const Node& section, const std::string& name) {
  NamedValues values;
  for (const config::Entry& entry : section.entries) {
    if (entry.key != name && !entry.key.ends_with("_" + name)) continue;
    if (entry.value.type != config::ScalarType::real) continue;
    values.emplace_back(entry.key, config::parse_real(entry.value.text).value.value_or(0));
  }
  return values;
}

// Whether a group asks that norms, biases and embeddings decay too. Where the optimizer moves these
// by a rule with a decay of its own (Muon: adamw_weight_decay), only that field asks for it.
bool decays_all(const Node& group, const NamedValues& decays) {
  const bool has_own =
      std::ranges::any_of(decays, [](const auto& decay) { return decay.first != kWeightDecay; });
  return std::ranges::any_of(values_of(group, kWeightDecay), [&](const auto& set) {
    return !has_own || set.first != kWeightDecay;
  });
}

}  // namespace

const Declaration* optimizer_declaration(const Declaration* own) {
  if (own == nullptr) return nullptr;
  static std::mutex mutex;
  static std::map<const Declaration*, WithGroups> known;
  const std::lock_guard lock(mutex);
  return &known.try_emplace(own, *own).first->second.whole;
}

ParameterPatterns patterns_in(const Node& list, std::string field) {
  ParameterPatterns patterns{.patterns = {}, .field = place_of(std::move(field), list)};
  for (const Node& item : list.items) patterns.patterns.push_back(item.text);
  return patterns;
}

config::Choice optimizer_choice() {
  config::Choice choice = registered_choice<Optimizer>();
  choice.find = [find = std::move(choice.find)](std::string_view name) {
    return optimizer_declaration(find(name));
  };
  return choice;
}

ParameterRules parameter_rules(const Node& section, const std::string& path) {
  ParameterRules rules;
  const Declaration& own = *entry_of(section).declaration();
  rules.rest.rates = values_of(section, kLr);
  rules.rest.decays = values_of(section, kWeightDecay);
  const std::vector<Node>& groups = groups_in(section);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Node whole = with_group(section, own, groups[i]);
    NamedValues decays = values_of(whole, kWeightDecay);
    const bool all = decays_all(groups[i], decays);
    rules.groups.push_back(
        {.parameters = patterns_in(*groups[i].find("parameters"),
                                   fmt::format("{}.{}[{}].parameters", path, kGroups, i)),
         .lr_scale = config::read<GroupFields>(groups[i]).lr_scale,
         .decays_all = all,
         .rates = values_of(whole, kLr),
         .decays = std::move(decays)});
  }
  const Node* freeze = section.find("freeze");
  if (freeze == nullptr) return rules;  // of a program that builds the section by hand
  rules.freeze = patterns_in(*freeze, path + ".freeze");
  rules.layer_lr_decay = config::read<SharedFields>(section).layer_lr_decay;
  rules.layer_lr_decay_field = place_of(path + ".layer_lr_decay", *section.find("layer_lr_decay"));
  return rules;
}

std::shared_ptr<Optimizer> make_optimizer(const Node& section) {
  const ClassEntry<Optimizer>& entry = entry_of(section);
  const ParameterRules rules = parameter_rules(section);
  if (rules.is_plain()) return entry.make(section);
  return std::make_shared<GroupedOptimizer>(
      [section, &entry](std::optional<std::size_t> rule) {
        if (!rule) return entry.make(section);
        return entry.make(with_group(section, *entry.declaration(), groups_in(section)[*rule]));
      },
      rules.groups.size());
}

}  // namespace phalanx
