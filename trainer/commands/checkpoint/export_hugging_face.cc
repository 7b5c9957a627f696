// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/api/task_modules.h"
#include "trainer/checkpoint/format/checked_file.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/cli/command.h"
#include "trainer/commands/checkpoint/copy_model.h"
#include "trainer/commands/checkpoint/export_format.h"
#include "trainer/commands/checkpoint/exported_files.h"
#include "trainer/commands/checkpoint/exported_model.h"
#include "trainer/commands/checkpoint/written_dtype.h"
#include "trainer/commands/new/new_folder.h"
#include "trainer/commands/use/trained_adapters.h"
#include "trainer/config/syntax/print.h"

namespace phalanx {
namespace {

std::vector<CopiedTensor> exported(const Contents& contents, const HuggingFaceModel& model,
                                   const Invocation& invocation) {
  std::vector<CopiedTensor> tensors;
  for (const ManifestTensor& tensor : contents.tensors) {
    if (tensor.part != kModelPart || is_of_task(tensor.name)) continue;
    tensors.push_back({.source = &tensor,
                       .name = hugging_face_name(model, tensor.name),
                       .dtype = asked_dtype(invocation, tensor.dtype)});
  }
  return tensors;
}

// The weights beside which there are adapters, with these in them.
void merge(const TrainedAdapters& adapters, std::vector<CopiedTensor>& tensors) {
  constexpr std::string_view kWeight = ".weight";
  for (CopiedTensor& tensor : tensors) {
    std::string module = tensor.source->name;
    if (!module.ends_with(kWeight)) continue;
    module.resize(module.size() - kWeight.size());
    const auto found = adapters.by_module.find(module);
    if (found == adapters.by_module.end()) continue;
    tensor.changed = [matrices = found->second, scale = adapters.config.options().scale](
                         int64_t begin, const at::Tensor& values) {
      return matrices.merged(scale, begin, values);
    };
  }
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
  const auto [run, section, model] = exported_model(checkpoint);
  const Checkpoint source =
      holds_adapters(checkpoint) ? base_of(checkpoint, run, invocation) : checkpoint;
  auto tensors = exported(source.manifest, model, invocation);
  if (holds_adapters(checkpoint)) merge(adapters_in(checkpoint, run, section), tensors);
  Attachments files = exported_files(checkpoint, run, model.model_type);
  config::Node config = hugging_face_config(model, section);
  agree_on_tokens(config, files);
  NewFolder folder(invocation.arguments[1]);
  write_text(folder.path() / "config.json", config_json(std::move(config), tensors));
  for (const auto& [name, content] : files) write_text(folder.path() / name, content);
  const ModelCopy copy(source.path, source.manifest, tensors);
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
