// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/optimizer_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "trainer/api/parameter_count.h"
#include "trainer/api/parameters.h"
#include "trainer/base/nearest.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

constexpr std::size_t kShown = 5;

// "a, b, c", and how many more there are.
std::string some_of(const std::vector<std::string>& names) {
  const auto shown = std::span(names).first(std::min(names.size(), kShown));
  const std::size_t more = names.size() - shown.size();
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

bool takes(const OptimizerRules& optimizer, const std::string& name) {
  return optimizer.parameters && matches(*optimizer.parameters, name);
}

/// The optimizer of each parameter, by its place among the optimizers.
class Owners {
 public:
  explicit Owners(std::span<const OptimizerRules> optimizers) : optimizers_(optimizers) {}

  /// None: nobody takes it.
  std::optional<std::size_t> of(const std::string& name) const {
    std::optional<std::size_t> rest;
    for (std::size_t i = 0; i < optimizers_.size(); ++i) {
      if (takes(optimizers_[i], name)) return i;
      if (!optimizers_[i].parameters) rest = i;
    }
    return rest;
  }

  void require_one(const std::vector<NamedParameter>& trained) const {
    std::vector<std::string> without;
    for (const NamedParameter& parameter : trained) {
      refuse_two(parameter.name, trained);
      if (!of(parameter.name)) without.push_back(parameter.name);
    }
    if (!without.empty()) refuse_none(without);
  }

 private:
  // Names all that the same two take.
  void refuse_two(const std::string& name, const std::vector<NamedParameter>& trained) const {
    const auto take = [&](const OptimizerRules& each) { return takes(each, name); };
    const auto first = std::ranges::find_if(optimizers_, take);
    if (first == optimizers_.end()) return;
    const auto second = std::find_if(first + 1, optimizers_.end(), take);
    if (second == optimizers_.end()) return;
    std::vector<std::string> shared;
    for (const NamedParameter& each : trained) {
      if (takes(*first, each.name) && takes(*second, each.name)) shared.push_back(each.name);
    }
    throw UserError(fmt::format(
        "{} and {} match the same parameters, and each belongs to one optimizer: {}; narrow one of "
        "the two, or leave out `parameters` of one optimizer, which then takes what no other does",
        first->parameters->field, second->parameters->field, some_of(shared)));
  }

  [[noreturn]] void refuse_none(const std::vector<std::string>& without) const {
    std::vector<std::string> patterns;
    for (const OptimizerRules& each : optimizers_) {
      patterns.insert(patterns.end(), each.parameters->patterns.begin(),
                      each.parameters->patterns.end());
    }
    const std::string nearest = by_nearness(without.front(), std::move(patterns)).front();
    const auto has = [&](const OptimizerRules& each) {
      return std::ranges::find(each.parameters->patterns, nearest) !=
             each.parameters->patterns.end();
    };
    throw UserError(fmt::format(
        "no optimizer takes these of the model's trained parameters: {}; the nearest pattern is "
        "'{}' of {}. Add patterns, leave out `parameters` of one optimizer, which then takes what "
        "no other does, or name them in `freeze`",
        some_of(without), nearest, std::ranges::find_if(optimizers_, has)->parameters->field));
  }

  std::span<const OptimizerRules> optimizers_;
};

bool is_plain(std::span<const OptimizerRules> optimizers) {
  return optimizers.size() == 1 && !optimizers.front().parameters;
}

std::vector<NamedParameter> trained_parameters(ModelBase& model) {
  std::vector<NamedParameter> parameters = named_parameters(model);
  std::erase_if(parameters, [](const auto& each) { return !each.tensor.requires_grad(); });
  return parameters;
}

}  // namespace

void freeze_by_optimizer(ModelBase& model, std::span<const OptimizerRules> optimizers) {
  if (is_plain(optimizers)) return freeze_parameters(model, optimizers.front().rules);
  const Owners owners(optimizers);
  const std::vector<NamedParameter> parameters = named_parameters(model);
  for (std::size_t i = 0; i < optimizers.size(); ++i) {
    const ParameterRules& rules = optimizers[i].rules;
    if (rules.freeze.patterns.empty()) continue;
    std::vector<NamedParameter> own = parameters;
    std::erase_if(own, [&](const auto& each) { return owners.of(each.name) != i; });
    freeze_parameters(model, rules, own);
    require_trained(model, rules.freeze.field);
  }
}

std::vector<std::vector<ParameterGroup>> groups_by_optimizer(
    ModelBase& model, std::span<const OptimizerRules> optimizers) {
  std::vector<std::vector<ParameterGroup>> groups;
  if (is_plain(optimizers)) {
    groups.push_back(parameter_groups(model, optimizers.front().rules));
    return groups;
  }
  const Owners owners(optimizers);
  const std::vector<NamedParameter> trained = trained_parameters(model);
  for (const OptimizerRules& optimizer : optimizers) {
    if (optimizer.parameters) require_matches(*optimizer.parameters, "trained parameter", trained);
  }
  owners.require_one(trained);
  for (std::size_t i = 0; i < optimizers.size(); ++i) {
    groups.push_back(parameter_groups(model, optimizers[i].rules, [&](const auto& parameter) {
      return owners.of(parameter.name) == i;
    }));
    if (!groups.back().empty()) continue;
    throw UserError(
        fmt::format("optimizers.{0}: the others take all trained parameters; name some in "
                    "optimizers.{0}.parameters, or remove it",
                    optimizers[i].name));
  }
  return groups;
}

std::vector<std::vector<std::string>> describe_by_optimizer(
    const std::vector<std::vector<ParameterGroup>>& groups, ModelBase& model,
    std::span<const OptimizerRules> optimizers) {
  if (is_plain(optimizers)) {
    return {describe_groups(groups.front(), model, optimizers.front().rules)};
  }
  const Owners owners(optimizers);
  std::vector<std::vector<std::string>> lines;
  for (std::size_t i = 0; i < optimizers.size(); ++i) {
    ParameterRules rules = optimizers[i].rules;
    rules.freeze.patterns.clear();  // its line would count those of all optimizers
    lines.push_back(describe_groups(groups[i], model, rules));
    const ParameterPatterns& freeze = optimizers[i].rules.freeze;
    if (freeze.patterns.empty()) continue;
    std::vector<NamedParameter> frozen = named_parameters(model);
    std::erase_if(frozen, [&](const auto& parameter) {
      return owners.of(parameter.name) != i || !matches(freeze, parameter.name);
    });
    lines.back().push_back("frozen: " + count_text(frozen));
  }
  return lines;
}

}  // namespace phalanx
