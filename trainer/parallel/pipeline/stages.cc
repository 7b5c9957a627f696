// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/stages.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>
#include <unordered_map>

#include "trainer/api/modules.h"

namespace phalanx::pipeline {
namespace {

std::vector<NamedHooked> outermost_units(torch::nn::Module& module) {
  std::vector<NamedHooked> outermost;
  for (NamedHooked& unit : units(module)) {
    if (!outermost.empty() && unit.name.starts_with(outermost.back().name + ".")) continue;
    outermost.push_back(std::move(unit));
  }
  return outermost;
}

bool is_within(const std::string& parameter, const NamedHooked& unit) {
  return parameter.starts_with(unit.name + ".");
}

}  // namespace

int64_t Stages::stage_of(int64_t unit) const {
  int64_t stage = 0;
  while (unit >= first_unit(stage + 1)) ++stage;
  return stage;
}

Stages divide(torch::nn::Module& module, int64_t count) {
  Stages stages{.count = count, .units = outermost_units(module)};
  const auto units = static_cast<int64_t>(stages.units.size());
  if (count < 1 || units < count) {
    throw std::invalid_argument(
        fmt::format("{} stages of a model of {} {}", count, units, units == 1 ? "unit" : "units"));
  }
  std::unordered_map<const at::TensorImpl*, size_t> known;
  std::unordered_map<const at::TensorImpl*, std::set<int64_t>> users;
  for (const auto& [name, tensor] : modules::named_parameters(module)) {
    const auto* const impl = tensor.unsafeGetTensorImpl();
    if (known.emplace(impl, stages.parameters.size()).second) {
      stages.parameters.push_back({.name = name, .tensor = tensor});
    }
    int64_t stage = -1;  // outside the units
    for (int64_t i = 0; i < units && stage < 0; ++i) {
      if (is_within(name, stages.units[static_cast<size_t>(i)])) stage = stages.stage_of(i);
    }
    users[impl].insert(stage);
  }
  for (StagedParameter& parameter : stages.parameters) {
    const std::set<int64_t>& its = users.at(parameter.tensor.unsafeGetTensorImpl());
    if (its.size() > 1) {
      throw std::invalid_argument(fmt::format(
          "the parameter '{}' belongs to a unit, and to another stage, too", parameter.name));
    }
    const int64_t stage = *its.begin();
    if (stage >= 0) {
      parameter.stages = {stage};
    } else if (count == 1) {
      parameter.stages = {0};
    } else {
      parameter.stages = {0, count - 1};
    }
  }
  return stages;
}

}  // namespace phalanx::pipeline
