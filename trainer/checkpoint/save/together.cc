// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/together.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "trainer/checkpoint/save/save_error.h"
#include "trainer/ranks/ranks.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {

void together(const Ranks& ranks, const std::function<void()>& action) {
  std::string failure;
  try {
    action();
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::exception& error) {
    failure = error_text(error);
    if (failure.empty()) failure = "an error without a message";
  }
  const std::vector<std::string> failures = ranks.all_gather(failure);
  for (std::size_t rank = 0; rank < failures.size(); ++rank) {
    if (failures[rank].empty()) continue;
    throw SaveError(
        ranks.is_single_rank() ? failure : fmt::format("rank {}: {}", rank, failures[rank]),
        !failure.empty());
  }
}

}  // namespace phalanx
