// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/checked_file.h"
#include "trainer/checkpoint/load.h"
#include "trainer/commands/checkpoint_paths.h"
#include "trainer/commands/command_table.h"
#include "trainer/commands/copy_model.h"
#include "trainer/commands/export_format.h"
#include "trainer/commands/model_section.h"
#include "trainer/commands/new_folder.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/syntax/print.h"

namespace phalanx {

int run_checkpoint_export(const Invocation& invocation) {
  const Checkpoint checkpoint = open_checkpoint(checkpoint_at(invocation.arguments[0]));
  const std::string done = export_format(invocation).write(checkpoint, invocation);
  fmt::print("{}: {}\n", checkpoint.path.filename().string(), done);
  return 0;
}

}  // namespace phalanx
