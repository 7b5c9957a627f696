// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/checkpoint/exported_model.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/hugging_face/model_section.h"

namespace phalanx {

ExportedModel exported_model(const Checkpoint& checkpoint) {
  config::Node run =
      config::parse_json(checkpoint.manifest.config, (checkpoint.path / "manifest.json").string());
  const config::Node* section = run.find("model");
  if (section == nullptr || section->find("name") == nullptr) {
    throw UserError(
        fmt::format("'{}' does not say which model it holds: its config has no section "
                    "model, so it was not saved by the trainer",
                    checkpoint.path.string()));
  }
  config::Node resolved = resolved_model(*section);
  const HuggingFaceModel& table = hugging_face_model(resolved.find("name")->text);
  return {.run = std::move(run), .section = std::move(resolved), .table = table};
}

}  // namespace phalanx
