// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/parameter_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "trainer/api/adapters.h"
#include "trainer/api/modules.h"
#include "trainer/api/parameter_count.h"
#include "trainer/api/parameters.h"
#include "trainer/api/task_modules.h"
#include "trainer/api/units.h"
#include "trainer/base/nearest.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

bool matches(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

/// Where a parameter is in the model: 0 above the last unit, 1 in it, ever more downwards.
struct Depth {
  int64_t depth = 0;
  std::string place;  ///< "h.3", or what it is above or below of.
};

/// By the order of registration: what comes before the first unit (embeddings) is below all of
/// them, what comes after the last one (a norm, a head) above; between two it goes with the former.
/// A task's modules are above, whatever units are in them.
/// `field`: where a config asks for it.
std::unordered_map<std::string, Depth> depths(torch::nn::Module& root,
                                              const std::vector<NamedParameter>& parameters,
                                              const std::string& field) {
  std::unordered_map<const at::TensorImpl*, std::size_t> unit_of;
  std::vector<std::string> names;
  for (const NamedHooked& unit : units(root)) {
    if (is_of_task(unit.name)) continue;
    bool is_new = false;
    for (const at::Tensor& tensor : modules::parameters(*unit.module)) {
      is_new |= unit_of.emplace(tensor.unsafeGetTensorImpl(), names.size()).second;
    }
    if (is_new) names.push_back(unit.name);  // not one within a unit that has been seen
  }
  if (names.empty()) {
    throw UserError(field + ": the model has no units to go down by; remove it");
  }
  const auto count = static_cast<int64_t>(names.size());
  std::unordered_map<std::string, Depth> found;
  std::optional<std::size_t> latest;
  for (const NamedParameter& parameter : parameters) {
    const auto unit = unit_of.find(parameter.tensor.unsafeGetTensorImpl());
    if (unit != unit_of.end()) latest = std::max(latest.value_or(0), unit->second);
    const bool is_above = latest == names.size() - 1 || is_of_task(parameter.name);
    if (unit == unit_of.end() && is_above) {
      found[parameter.name] = {.depth = 0, .place = "above " + names.back()};
    } else if (unit == unit_of.end() && !latest) {
      found[parameter.name] = {.depth = count + 1, .place = "below " + names.front()};
    } else {
      const std::size_t of = unit == unit_of.end() ? *latest : unit->second;
      found[parameter.name] = {.depth = count - static_cast<int64_t>(of), .place = names[of]};
    }
  }
  return found;
}

std::optional<std::size_t> rule_of(const std::string& name, const ParameterRules& rules) {
  for (std::size_t i = 0; i < rules.groups.size(); ++i) {
    if (matches(rules.groups[i].parameters, name)) return i;
  }
  return std::nullopt;
}

std::string label_of(const GroupRule& rule, const std::string& place, bool decays) {
  std::vector<std::string> parts;
  if (!rule.parameters.patterns.empty()) {
    parts.push_back(fmt::format("{}", fmt::join(rule.parameters.patterns, " ")));
  }
  if (!place.empty()) parts.push_back(place);
  if (!rule.decays_all) parts.emplace_back(decays ? "decay" : "no decay");
  return fmt::format("{}", fmt::join(parts, ", "));
}

void require_all_used(const ParameterRules& rules, const std::vector<ParameterGroup>& groups) {
  for (std::size_t i = 0; i < rules.groups.size(); ++i) {
    if (std::ranges::any_of(groups, [&](const auto& group) { return group.rule == i; })) continue;
    throw UserError(
        fmt::format("{}: all parameters that match belong to groups before this one, as the first "
                    "that matches counts; put it before them, or remove it",
                    rules.groups[i].parameters.field));
  }
}

std::string line_of(const ParameterGroup& group, const GroupRule& rule) {
  std::string line = fmt::format("{}: {}", group.label, count_text(group.parameters));
  for (const auto& [field, rate] : rule.rates) {
    line += fmt::format(", {} {:g}", field, rate * group.lr_scale);
  }
  for (const auto& [field, decay] : rule.decays) {
    line += fmt::format(", {} {:g}", field, group.weight_decay ? decay : 0.0);
  }
  return line;
}

// A checkpoint of adapters holds what is trained, and a frozen one would be lost.
[[noreturn]] void refuse_frozen_adapter(const ParameterPatterns& freeze, const std::string& name) {
  throw UserError(fmt::format(
      "{}: '{}' belongs to an adapter, and adapters cannot be frozen; leave its layer out of "
      "lora.target_modules, or give it lr: 0 in a group of optimizer.groups",
      freeze.field, name));
}

}  // namespace

bool matches(const ParameterPatterns& patterns, const std::string& name) {
  return std::ranges::any_of(patterns.patterns,
                             [&](const std::string& pattern) { return matches(pattern, name); });
}

void require_matches(const ParameterPatterns& patterns, std::string_view kind,
                     const std::vector<NamedParameter>& parameters) {
  constexpr std::size_t kShown = 5;
  for (const std::string& pattern : patterns.patterns) {
    const auto is_matched = [&](const NamedParameter& each) { return matches(pattern, each.name); };
    if (std::ranges::any_of(parameters, is_matched)) continue;
    std::vector<std::string> names;
    for (const auto& parameter : parameters) names.push_back(parameter.name);
    const std::size_t all = names.size();
    names = by_nearness(pattern, std::move(names));
    names.resize(std::min(all, kShown));
    throw UserError(fmt::format("{}: no {} of the model matches '{}'; {} {}: {}", patterns.field,
                                kind, pattern, all > kShown ? "the nearest of" : "of", all,
                                fmt::join(names, ", ")));
  }
}

void require_trained(ModelBase& model, const std::string& field) {
  const auto is_trained = [](const auto& parameter) { return parameter.tensor.requires_grad(); };
  if (std::ranges::any_of(named_parameters(model), is_trained)) return;
  throw UserError(field + ": this freezes all parameters; leave some to train");
}

void freeze_parameters(ModelBase& model, const ParameterRules& rules,
                       const std::vector<NamedParameter>& parameters) {
  require_matches(rules.freeze, "parameter", parameters);
  const bool is_adapted = has_adapters(model);
  for (const NamedParameter& parameter : parameters) {
    at::Tensor tensor = parameter.tensor;
    if (!matches(rules.freeze, parameter.name) || !tensor.requires_grad()) continue;
    if (is_adapted && !is_of_task(parameter.name)) {
      refuse_frozen_adapter(rules.freeze, parameter.name);
    }
    tensor.set_requires_grad(false);
  }
}

void freeze_parameters(ModelBase& model, const ParameterRules& rules) {
  if (rules.freeze.patterns.empty()) return;
  freeze_parameters(model, rules, named_parameters(model));
  require_trained(model, rules.freeze.field);
}

std::vector<ParameterGroup> parameter_groups(ModelBase& model, const ParameterRules& rules) {
  return parameter_groups(model, rules, [](const NamedParameter&) { return true; });
}

std::vector<ParameterGroup> parameter_groups(
    ModelBase& model, const ParameterRules& rules,
    const std::function<bool(const NamedParameter&)>& takes) {
  std::vector<NamedParameter> parameters = named_parameters(model);
  std::unordered_map<std::string, Depth> places;
  if (rules.layer_lr_decay != 1)
    places = depths(model.module(), parameters, rules.layer_lr_decay_field);
  std::erase_if(parameters,
                [&](const auto& each) { return !each.tensor.requires_grad() || !takes(each); });
  for (const GroupRule& rule : rules.groups) {
    require_matches(rule.parameters, "trained parameter", parameters);
  }

  const auto embeddings = modules::embedding_weights(model.module());
  // In the order of rules, from the top down; what no rule takes comes last.
  std::map<std::tuple<std::size_t, int64_t, bool>, ParameterGroup> groups;
  for (NamedParameter& parameter : parameters) {
    const auto index = rule_of(parameter.name, rules);
    const GroupRule& rule = index ? rules.groups[*index] : rules.rest;
    const Depth place = places.empty() ? Depth() : places.at(parameter.name);
    const bool keeps =
        !rule.decays_all &&
        (parameter.tensor.dim() < 2 || embeddings.contains(parameter.tensor.unsafeGetTensorImpl()));
    ParameterGroup& group = groups[{index.value_or(rules.groups.size()), place.depth, keeps}];
    if (group.parameters.empty()) {
      group.label = label_of(rule, place.place, !keeps);
      group.weight_decay = !keeps;
      group.rule = index;
      group.lr_scale =
          rule.lr_scale * std::pow(rules.layer_lr_decay, static_cast<double>(place.depth));
    }
    group.parameters.push_back(std::move(parameter));
  }
  std::vector<ParameterGroup> result;
  for (auto& [key, group] : groups) result.push_back(std::move(group));
  require_all_used(rules, result);
  return result;
}

std::vector<std::string> describe_groups(const std::vector<ParameterGroup>& groups,
                                         ModelBase& model, const ParameterRules& rules) {
  std::vector<std::string> lines;
  for (const auto& group : groups) {
    lines.push_back(line_of(group, group.rule ? rules.groups[*group.rule] : rules.rest));
  }
  if (rules.freeze.patterns.empty()) return lines;
  std::vector<NamedParameter> frozen = named_parameters(model);
  std::erase_if(frozen, [](const auto& parameter) { return parameter.tensor.requires_grad(); });
  lines.push_back("frozen: " + count_text(frozen));
  return lines;
}

}  // namespace phalanx
