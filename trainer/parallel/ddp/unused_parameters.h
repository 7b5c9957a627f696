// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstddef>
#include <string>
#include <vector>

namespace phalanx {

struct DdpOptions;

/// The text of the error for parameters that got no gradient in a reduced backward pass: it names
/// them and the option to set. `names`: the reducer's parameters; `unused`: indices into `names`,
/// at least one.
std::string unused_parameters_text(const std::vector<std::string>& names,
                                   const std::vector<std::size_t>& unused);

/// Calls `action`, in which c10d's reducer finds out whether the backward pass before was reduced.
/// Where it was not, throws std::logic_error with the names of the parameters that had no gradient,
/// and the options to set, in place of the reducer's error.
void naming_unused_parameters(const std::vector<std::string>& names, const DdpOptions& options,
                              c10::function_ref<void()> action);

}  // namespace phalanx
