#include <fmt/format.h>

#include "trainer/commands/command.h"
#include "trainer/commands/load_config.h"
#include "trainer/config/print.h"
#include "trainer/config/user_error.h"

namespace phalanx {

int run_config(Arguments arguments) {
  if (arguments.empty() || arguments.front() != "print") {
    throw UserError(
        "what to do with a config: trainer config print CONFIG [CONFIG ...] [key=value ...]");
  }
  const UserConfig user = load_config(arguments.subspan(1));
  fmt::print("{}", config::print(resolve_config(user, std::nullopt),
                                 {.with_origins = true, .mark_defaults = true}));
  return 0;
}

}  // namespace phalanx
