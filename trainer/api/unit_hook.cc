// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/unit_hook.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <unordered_set>

#include "trainer/api/modules.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

thread_local bool recomputing = false;

bool matches(const std::string& pattern, const NamedUnit& unit) {
  const auto is = [&](const std::string& text) {
    return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
  };
  return is(unit.name) || is(modules::class_name(*unit.module));
}

std::string list(const std::vector<NamedUnit>& units) {
  std::vector<std::string> texts;
  for (const NamedUnit& unit : units) {
    texts.push_back(fmt::format("{} ({})", unit.name, modules::class_name(*unit.module)));
  }
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

void Unit::attach(std::shared_ptr<UnitHook> hook, HookPlace place) {
  hooks_.insert(place == HookPlace::outermost ? hooks_.begin() : hooks_.end(), std::move(hook));
}

at::Tensor Unit::run(std::vector<at::Tensor> inputs, UnitForward forward) {
  for (auto hook = hooks_.rbegin(); hook != hooks_.rend(); ++hook) {
    forward = [this, hook = *hook, within = std::move(forward)](std::vector<at::Tensor> tensors) {
      return hook->around(*this, std::move(tensors), within);
    };
  }
  return forward(std::move(inputs));
}

std::vector<NamedUnit> units(torch::nn::Module& root) {
  std::vector<NamedUnit> found;
  std::unordered_set<Unit*> seen;
  for (const auto& [name, module] : modules::descendants(root)) {
    Unit* const unit = modules::as_unit(*module);
    if (unit != nullptr && seen.insert(unit).second) found.push_back({name, unit, module});
  }
  return found;
}

std::vector<NamedUnit> units_by_name(const std::vector<NamedUnit>& units,
                                     const std::vector<std::string>& patterns,
                                     std::string_view field) {
  for (const std::string& pattern : patterns) {
    if (std::any_of(units.begin(), units.end(),
                    [&](const NamedUnit& unit) { return matches(pattern, unit); })) {
      continue;
    }
    throw UserError(fmt::format("{}: no unit of the model matches '{}'; there are: {}", field,
                                pattern, list(units)));
  }
  std::vector<NamedUnit> chosen;
  for (const NamedUnit& unit : units) {
    if (std::any_of(patterns.begin(), patterns.end(),
                    [&](const std::string& pattern) { return matches(pattern, unit); })) {
      chosen.push_back(unit);
    }
  }
  return chosen;
}

bool is_recomputing() { return recomputing; }

Recomputation::Recomputation() : before_(recomputing) { recomputing = true; }
Recomputation::~Recomputation() { recomputing = before_; }

}  // namespace phalanx
