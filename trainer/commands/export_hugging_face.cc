// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/attachments.h"
#include "trainer/checkpoint/checked_file.h"
#include "trainer/checkpoint/load.h"
#include "trainer/cli/command.h"
#include "trainer/commands/copy_model.h"
#include "trainer/commands/export_format.h"
#include "trainer/commands/model_section.h"
#include "trainer/commands/new_folder.h"
#include "trainer/commands/written_dtype.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/syntax/print.h"

namespace phalanx {
namespace {

config::Node model_of(const Checkpoint& checkpoint) {
  const config::Node config =
      config::parse_json(checkpoint.manifest.config, (checkpoint.path / "manifest.json").string());
  const config::Node* section = config.find("model");
  if (section != nullptr && section->find("name") != nullptr) return resolved_model(*section);
  throw UserError(
      fmt::format("'{}' does not say which model it holds: its config has no section "
                  "model, so it was not saved by the trainer",
                  checkpoint.path.string()));
}

std::vector<CopiedTensor> exported(const Contents& contents, const HuggingFaceModel& model,
                                   const Invocation& invocation) {
  std::vector<CopiedTensor> tensors;
  for (const ManifestTensor& tensor : contents.tensors) {
    if (tensor.part != kModelPart) continue;
    tensors.push_back({.source = &tensor,
                       .name = hugging_face_name(model, tensor.name),
                       .dtype = asked_dtype(invocation, tensor.dtype)});
  }
  return tensors;
}

/// "float32", of the weights.
std::string torch_name(const std::vector<CopiedTensor>& tensors) {
  const auto real = std::find_if(tensors.begin(), tensors.end(), [](const CopiedTensor& tensor) {
    return c10::isFloatingType(tensor.dtype);
  });
  switch (real == tensors.end() ? at::kFloat : real->dtype) {
    case at::kDouble:
      return "float64";
    case at::kBFloat16:
      return "bfloat16";
    case at::kHalf:
      return "float16";
    default:
      return "float32";
  }
}

// In the form that save_pretrained gives it.
std::string config_json(config::Node config, const std::vector<CopiedTensor>& tensors) {
  config.set("torch_dtype", config::Node::string(torch_name(tensors)));
  return nlohmann::json::parse(config::to_json(config)).dump(2) + "\n";
}

// See ExportFormat::write.
std::string write_folder(const Checkpoint& checkpoint, const Invocation& invocation) {
  const config::Node section = model_of(checkpoint);
  const HuggingFaceModel& model = hugging_face_model(section.find("name")->text);
  const auto tensors = exported(checkpoint.manifest, model, invocation);
  const std::string config = config_json(hugging_face_config(model, section), tensors);
  const Attachments attachments = read_attachments(checkpoint);
  require_attachable(attachments);
  NewFolder folder(invocation.arguments[1]);
  write_text(folder.path() / "config.json", config);
  for (const auto& [name, content] : attachments) write_text(folder.path() / name, content);
  const ModelCopy copy(checkpoint.path, checkpoint.manifest, tensors);
  const Contents written =
      copy_model(copy, folder.path(), "exporting " + checkpoint.path.filename().string());
  folder.commit();
  return fmt::format("{} written to {}", summary_of(written), folder.destination().string());
}

}  // namespace

ExportFormat hugging_face_format() {
  return {.name = "hf",
          .meaning = "a folder that Hugging Face's from_pretrained opens",
          .write = write_folder};
}

}  // namespace phalanx
