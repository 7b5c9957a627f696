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
  return config::parse_json(read_text(path, config::kMaxConfigBytes), path.string());
}

std::string model_type_of(const config::Node& config) {
  const config::Node* type = config.find("model_type");
  if (type != nullptr && type->is_scalar()) return type->text;
  throw UserError(fmt::format("'{}' does not say what the model is: it has no model_type",
                              config.origin.text()));
}

}  // namespace phalanx
