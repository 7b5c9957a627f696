#include "trainer/commands/errors.h"

#include <c10/util/Exception.h>

#include <stdexcept>

#include "trainer/config/user_error.h"

namespace phalanx {

std::string message_of(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const c10::Error*>(&exception)) {
    return error->what_without_backtrace();
  }
  return exception.what();
}

void rethrow_with_step(long step) {
  if (step == 0) throw;  // before the first one: no step's fault
  const std::string prefix = "step " + std::to_string(step) + ": ";
  try {
    throw;
  } catch (const UserError& error) {
    throw UserError(prefix + error.what());
  } catch (const std::exception& error) {
    throw std::runtime_error(prefix + message_of(error));
  }
}

}  // namespace phalanx
