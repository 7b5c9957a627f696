// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/module_hook.h"

namespace torch::nn {
class Module;
}

namespace phalanx {

/// A part of a model that is sharded, recomputed and profiled together. A block that the model
/// repeats derives from it and declares its holder with `UNIT(Block)`.
class Unit : public HookedModule {};

/// A module with hooks, by its dotted name in the model, for example "h.3".
struct NamedHooked {
  std::string name;
  HookedModule* hooks;
  torch::nn::Module* module;
};

/// The units of a model in the order of registration, without the root. A unit that is registered
/// in several places appears once, under its first name.
std::vector<NamedHooked> units(torch::nn::Module& root);

/// The same of all modules that can have hooks, units among them.
std::vector<NamedHooked> hooked_modules(torch::nn::Module& root);

/// Those whose dotted name or class matches one of the patterns (`*`, `?`), in their order. Throws
/// UserError for a pattern that matches none, with the config's `field` and all candidates.
std::vector<NamedHooked> matching(const std::vector<NamedHooked>& candidates,
                                  const std::vector<std::string>& patterns, std::string_view field);

}  // namespace phalanx
