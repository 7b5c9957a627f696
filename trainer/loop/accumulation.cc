// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/accumulation.h"

#include <string>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"
#include "trainer/loop/training_config.h"

namespace phalanx {
namespace {

// A message that begins with a field: "training.global_batch_size 9 is not a multiple of 4".
void throw_with_place(const config::Node& resolved, const std::string& message) {
  const std::size_t end = message.find(' ');
  const std::string field = message.substr(0, end);
  const config::Node* value = resolved.find_path(field);
  if (end == std::string::npos || value == nullptr || !value->origin.is_written()) return;
  config::Diagnostics mistakes;
  mistakes.add(value->origin, field, message.substr(end + 1));
  throw config::ConfigError(std::move(mistakes));
}

}  // namespace

int64_t accumulation_of(const config::Node& resolved, int64_t world_size) {
  try {
    return training_config(resolved).accumulation(world_size);
  } catch (const UserError& error) {
    throw_with_place(resolved, error.what());
    throw;
  }
}

}  // namespace phalanx
