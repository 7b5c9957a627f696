// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <exception>
#include <string>

#include "trainer/ranks/ranks.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {

void on_first_rank(const Ranks& ranks, const std::function<void()>& action) {
  if (ranks.is_single_rank()) return action();
  std::exception_ptr error;
  std::string failure;
  if (ranks.is_first()) {
    try {
      action();
    } catch (const std::exception& thrown) {
      error = std::current_exception();
      failure = fmt::format("rank 0 failed in {}: {}", ranks.activity(), error_text(thrown));
    }
  }
  failure = ranks.broadcast(failure);
  if (error) std::rethrow_exception(error);
  if (!failure.empty()) throw CommunicationError(failure);
}

}  // namespace phalanx
