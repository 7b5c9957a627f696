// SPDX-License-Identifier: Apache-2.0
#include "trainer/hugging_face/folder.h"

#include <fmt/format.h>

#include <system_error>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.json";
constexpr const char* kAdapterConfig = "adapter_config.json";

// With this file there transformers takes the adapters, and the model that it names in place of the
// folder's own.
void refuse_adapters(const fs::path& folder) {
  std::error_code unknown;
  if (!fs::exists(folder / kAdapterConfig, unknown)) return;
  throw UserError(
      fmt::format("'{}' holds adapters of peft (adapter_config.json) beside its weights, and the "
                  "adapters of others are not read: merge them with merge_and_unload() of peft, "
                  "and name the folder that save_pretrained() writes then; or move {} away, to use "
                  "the weights alone",
                  folder.string(), kAdapterConfig));
}

bool is_true(const config::Node* value) {
  return value != nullptr && value->is_scalar() && value->text == "true";
}

// What quantized the weights; bitsandbytes did not always say its name.
std::string method_of(const config::Node& quantization) {
  const config::Node* method = quantization.find("quant_method");
  if (method != nullptr && method->is_scalar()) return method->text;
  const bool is_bitsandbytes =
      is_true(quantization.find("load_in_4bit")) || is_true(quantization.find("load_in_8bit"));
  return is_bitsandbytes ? "bitsandbytes" : "a method without a name";
}

void refuse_quantized(const config::Node& config) {
  const config::Node* quantization = config.find("quantization_config");
  if (quantization == nullptr || quantization->is_null()) return;
  throw UserError(
      fmt::format("'{}' says that the weights are quantized: its quantization_config names {}, and "
                  "weights are read in float64, float32, float16 and bfloat16 only: name a folder "
                  "of the model before it was quantized, or one that dequantize() of transformers "
                  "and save_pretrained() wrote",
                  config.origin.text(), method_of(*quantization)));
}

}  // namespace

bool is_hugging_face_folder(const fs::path& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown) && fs::exists(path / kConfig, unknown) &&
         !fs::exists(path / kManifestFile, unknown) && is_safetensors_model(path);
}

config::Node read_hugging_face_config(const fs::path& folder) {
  const fs::path path = folder / kConfig;
  if (!fs::exists(path)) {
    throw UserError(
        fmt::format("'{}' has no config.json, which says what the model is: name a "
                    "folder that save_pretrained wrote",
                    folder.string()));
  }
  refuse_adapters(folder);
  config::Node config = config::parse_json(read_text(path, config::kMaxConfigBytes), path.string());
  refuse_quantized(config);
  return config;
}

std::string model_type_of(const config::Node& config) {
  const config::Node* type = config.find("model_type");
  if (type != nullptr && type->is_scalar()) return type->text;
  throw UserError(fmt::format("'{}' does not say what the model is: it has no model_type",
                              config.origin.text()));
}

}  // namespace phalanx
