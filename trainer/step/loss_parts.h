// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/api/loss.h"
#include "trainer/api/named_values.h"

namespace phalanx {

class Ranks;

/// Throws std::logic_error unless `loss` has the parts of the micro-batches before it, in the same
/// order: they are summed one by one. `before` holds pairs of a name and a value.
template <class NamedParts>
void require_same_parts(const NamedParts& before, const Loss& loss) {
  const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::equal(before.begin(), before.end(), loss.parts().begin(), loss.parts().end(),
                 same_name)) {
    return;
  }
  throw std::logic_error(
      "the task's losses have not the same parts, in the same order, in every micro-batch");
}

/// Adds a value to the part of this name, which is the last one where it is new.
void add_to_part(std::vector<std::pair<std::string, at::Tensor>>& parts, std::string_view name,
                 const at::Tensor& value);

/// Sums each value over all ranks. Every rank calls it, with the same names.
void sum_over_ranks(NamedValues& values, const Ranks& ranks);

/// Gives each value rank 0's number, in one exchange. Every rank calls it, with the same names.
void take_of_first_rank(NamedValues& values, const Ranks& ranks);

}  // namespace phalanx
