// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/adapters.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "trainer/api/modules.h"
#include "trainer/api/task_modules.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

bool matches(const std::string& target, const std::string& name) {
  return ::fnmatch(target.c_str(), name.c_str(), 0) == 0 ||
         ::fnmatch(("*." + target).c_str(), name.c_str(), 0) == 0;
}

// The last parts of dotted names, each once: "c_attn" is what users write.
std::set<std::string> last_parts(const std::vector<NamedAdaptable>& modules) {
  std::set<std::string> parts;
  for (const NamedAdaptable& each : modules) {
    parts.insert(each.name.substr(each.name.rfind('.') + 1));
  }
  return parts;
}

[[noreturn]] void refuse(const std::string& target, const std::vector<NamedAdaptable>& modules,
                         std::string_view field) {
  if (modules.empty()) {
    throw UserError(
        fmt::format("{}: no module of this model takes an adapter: its layers are no Linear of "
                    "models/layers",
                    field));
  }
  throw UserError(
      fmt::format("{}: no module of the model matches '{}'; there are: {}, for example "
                  "{}",
                  field, target, fmt::join(last_parts(modules), ", "), modules.front().name));
}

}  // namespace

std::vector<NamedAdaptable> adaptable_modules(ModelBase& model) {
  std::vector<NamedAdaptable> found;
  for (const auto& [name, module] : modules::descendants(model.module())) {
    if (is_of_task(name)) continue;  // trained as they are
    AdaptableModule* const adaptable = modules::as_adaptable(*module);
    if (adaptable == nullptr || !adaptable->takes_adapter()) continue;
    const bool is_new = std::none_of(found.begin(), found.end(),
                                     [&](const auto& each) { return each.module == adaptable; });
    if (is_new) found.push_back({name, adaptable});
  }
  return found;
}

bool has_adapters(ModelBase& model) {
  const auto candidates = adaptable_modules(model);
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const auto& each) { return each.module->has_adapter(); });
}

void add_adapters(ModelBase& model, const std::vector<std::string>& targets,
                  const AdapterOptions& options, std::string_view field) {
  const auto candidates = adaptable_modules(model);
  for (const std::string& target : targets) {
    const bool is_there = std::any_of(candidates.begin(), candidates.end(),
                                      [&](const auto& each) { return matches(target, each.name); });
    if (!is_there) refuse(target, candidates, field);
  }
  for (at::Tensor& parameter : modules::parameters(model.module())) {
    parameter.set_requires_grad(false);
  }
  for (const NamedAdaptable& each : candidates) {
    const bool is_target = std::any_of(targets.begin(), targets.end(), [&](const auto& target) {
      return matches(target, each.name);
    });
    if (is_target) each.module->add_adapter(options);
  }
}

}  // namespace phalanx
