// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/api/optimizer.h"

namespace torch::nn {
class Module;
}

namespace phalanx {
class HookedModule;
struct FsdpOptions;
}  // namespace phalanx

namespace phalanx::fsdp {

/// What is gathered and freed together: the parameters of one unit of the model, without those of
/// chosen units within it.
struct PlannedUnit {
  std::string name;              ///< "h.3"; empty: the root.
  HookedModule* unit = nullptr;  ///< None: the root, whose forward is the model's.
  bool is_whole = false;         ///< Kept whole on every rank: what `ignored_modules` names.
  std::vector<NamedParameter> parameters;
};

/// Chooses among the model's units by `options.auto_wrap` and gives each parameter to the innermost
/// chosen unit that all its uses lie in; what lies outside belongs to the root, which comes last
/// and may be empty. A unit without parameters of its own is left out. Throws UserError for a name
/// that nothing has, naming what there is.
std::vector<PlannedUnit> plan_units(torch::nn::Module& root, const FsdpOptions& options);

/// One line a parameter: what ranks must have in common before they can exchange parts of it.
std::string describe(const std::vector<PlannedUnit>& units);

}  // namespace phalanx::fsdp
