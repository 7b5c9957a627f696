// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

/// A text of each rank.
struct Texts {
  std::vector<std::string> all;
  size_t other = 0;  ///< The first rank whose text is not rank 0's.
};

Texts of_ranks(const std::string& mine, const Ranks& ranks) {
  std::vector<std::string> all = ranks.all_gather(mine);
  const auto other = std::ranges::find_if(all, [&](const auto& of) { return of != all.front(); });
  const auto place = static_cast<size_t>(other - all.begin());
  return {.all = std::move(all), .other = place};
}

}  // namespace

void require_agreement(const Decision& decision, const std::string& names, int64_t step,
                       const Ranks& ranks) {
  // Values are alike where the mean of squares is the square of the mean; hashes have so few bits
  // that no sum over ranks overflows.
  const auto hash = static_cast<int64_t>(std::hash<std::string>{}(names)&0xfffff);
  const at::Tensor sums = tensors::empty({4}, at::kLong);
  const std::span<int64_t, 4> numbers(sums.mutable_data_ptr<int64_t>(), 4);
  numbers[0] = decision.number;
  numbers[1] = decision.number * decision.number;
  numbers[2] = hash;
  numbers[3] = hash * hash;
  ranks.all_reduce(sums);
  const int64_t world_size = ranks.world_size();
  if (world_size * numbers[1] != numbers[0] * numbers[0]) {
    const Texts texts = of_ranks(decision.text, ranks);
    const auto count = [&](const Decision& of) { return std::ranges::count(texts.all, of.text); };
    const auto updating = count(Decision::update());
    const bool is_of_two = updating + count(Decision::skip()) == world_size;
    const std::string like_first =
        world_size == 2 ? ""
                        : fmt::format(" ({} of {} ranks do as rank 0)",
                                      std::ranges::count(texts.all, texts.all.front()), world_size);
    throw std::logic_error(fmt::format(
        "in step {} {}: all ranks run the same passes of a training_step, and all update or all "
        "skip (docs/add_a_task.md, part 7). Decide by a value that all ranks have, as one that is "
        "summed over TrainingStep::ranks()",
        step,
        is_of_two ? fmt::format("{} of {} ranks update and the others skip", updating, world_size)
                  : fmt::format("rank 0 {} and rank {} {}{}", texts.all.front(), texts.other,
                                texts.all[texts.other], like_first)));
  }
  if (world_size * numbers[3] == numbers[2] * numbers[2]) return;
  const Texts texts = of_ranks(names, ranks);
  throw std::logic_error(fmt::format(
      "in step {} rank 0 logs '{}' and rank {} '{}': all ranks log the same names, in the same "
      "order",
      step, texts.all.front(), texts.other, texts.all[texts.other]));
}

}  // namespace phalanx
