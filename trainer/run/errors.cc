// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/errors.h"

#include <stdexcept>
#include <string>

#include "trainer/base/said_by.h"
#include "trainer/base/user_error.h"
#include "trainer/ranks/failures/failure.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {

void rethrow_with_step(long step) {
  if (step == 0) throw;  // before the first one: no step's fault
  const std::string place = "step " + std::to_string(step);
  try {
    throw;
  } catch (const UserError& error) {
    throw UserError(said_in(place, error.what()));
  } catch (const std::exception& error) {
    if (is_communication_error(error)) throw;  // another rank's fault, and it names its own step
    throw std::runtime_error(said_in(place, error_text(error)));
  }
}

}  // namespace phalanx
