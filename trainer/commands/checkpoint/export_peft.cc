// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/checked_file.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/cli/command.h"
#include "trainer/commands/checkpoint/export_format.h"
#include "trainer/commands/checkpoint/exported_files.h"
#include "trainer/commands/checkpoint/exported_model.h"
#include "trainer/commands/checkpoint/written_dtype.h"
#include "trainer/commands/new/new_folder.h"
#include "trainer/commands/use/trained_adapters.h"
#include "trainer/hugging_face/model_section.h"

namespace phalanx {
namespace {

constexpr std::string_view kWeight = ".weight";

// "transformer.h.0.attn.c_attn", of "h.0.attn.c_attn".
std::string module_there(const HuggingFaceModel& model, const std::string& module) {
  std::string name = hugging_face_name(model, module + std::string(kWeight));
  name.resize(name.size() - kWeight.size());
  return name;
}

// What peft.AutoPeftModel loads it as; null leaves it open.
nlohmann::ordered_json task_type(const std::string& architecture) {
  if (architecture.ends_with("ForCausalLM") || architecture.ends_with("LMHeadModel")) {
    return "CAUSAL_LM";
  }
  if (architecture.ends_with("ForConditionalGeneration")) return "SEQ_2_SEQ_LM";
  return nullptr;
}

std::string config_json(const TrainedAdapters& adapters, const HuggingFaceModel& model,
                        const std::string& base) {
  std::vector<std::string> modules;
  for (const auto& [name, matrices] : adapters.by_module) {
    modules.push_back(module_there(model, name));
  }
  nlohmann::ordered_json json;
  json["peft_type"] = "LORA";
  json["task_type"] = task_type(model.architecture);
  json["base_model_name_or_path"] = base;
  json["target_modules"] = modules;
  json["r"] = adapters.config.r;
  json["lora_alpha"] = adapters.config.lora_alpha;
  json["lora_dropout"] = adapters.config.lora_dropout;
  json["fan_in_fan_out"] = adapters.by_module.begin()->second.is_inputs_first;
  json["bias"] = "none";
  json["inference_mode"] = true;
  return json.dump(2) + "\n";
}

std::vector<ShardedTensorView> tensors_of(const TrainedAdapters& adapters,
                                          const HuggingFaceModel& model,
                                          const Invocation& invocation) {
  std::vector<ShardedTensorView> views;
  for (const auto& [name, matrices] : adapters.by_module) {
    const std::string prefix = "base_model.model." + module_there(model, name);
    for (const auto& [end, matrix] :
         {std::pair(".lora_A.weight", matrices.a), std::pair(".lora_B.weight", matrices.b)}) {
      views.push_back(
          whole_tensor(prefix + end, matrix.to(asked_dtype(invocation, matrix.scalar_type()))));
    }
  }
  return views;
}

// See ExportFormat::write.
std::string write_folder(const Checkpoint& checkpoint, const Invocation& invocation) {
  if (!holds_adapters(checkpoint)) {
    throw UserError(
        fmt::format("'{}' holds a whole model, and --format=peft is for adapters (a run with "
                    "lora.target_modules): leave it out",
                    checkpoint.path.string()));
  }
  const ExportedModel exported = exported_model(checkpoint);
  const TrainedAdapters adapters = adapters_in(checkpoint, exported.run, exported.section);
  const auto tensors = tensors_of(adapters, exported.table, invocation);
  const Attachments files = exported_files(checkpoint, exported.run, "");
  NewFolder folder(invocation.arguments[1]);
  write_text(folder.path() / "adapter_config.json",
             config_json(adapters, exported.table, base_path(exported.run, invocation).string()));
  write_safetensors(folder.path() / "adapter_model.safetensors", tensors);
  for (const auto& [name, content] : files) write_text(folder.path() / name, content);
  folder.commit();
  return fmt::format("{} tensors of {} adapters written to {}", tensors.size(),
                     adapters.by_module.size(), folder.destination().string());
}

}  // namespace

ExportFormat peft_format() {
  return {.name = "peft",
          .meaning = "the adapters of a run with the section lora, for PeftModel.from_pretrained",
          .write = write_folder};
}

}  // namespace phalanx
