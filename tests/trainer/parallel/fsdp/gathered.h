// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <set>
#include <string>
#include <string_view>

#include "trainer/api/parallel_engine.h"

namespace phalanx::fsdp::testing {

/// The units that have memory for the whole now, also where it is still on its way.
inline std::set<std::string> gathered_units(const ParallelEngine& engine) {
  constexpr std::string_view kGathered = "parameters, gathered: ";
  std::set<std::string> units;
  for (const MemoryUse& use : engine.memory()) {
    if (use.what.starts_with(kGathered)) units.insert(use.what.substr(kGathered.size()));
  }
  return units;
}

/// Whether a parameter, which has elements, cannot be read now.
inline bool is_given_up(const at::Tensor& parameter) {
  try {
    return parameter.const_data_ptr() == nullptr;
  } catch (const c10::Error&) {
    return true;
  }
}

}  // namespace phalanx::fsdp::testing
