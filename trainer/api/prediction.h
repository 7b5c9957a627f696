// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace phalanx {

/// What a model makes of one sample: names and values, in the order in which they are written.
using Prediction = std::vector<std::pair<std::string, std::variant<double, int64_t, std::string>>>;

/// Those of a batch, one a sample, in its order.
using Predictions = std::vector<Prediction>;

}  // namespace phalanx
