// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/sources.h"

#include <system_error>

#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/checkpoint/load/find.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// A checkpoint's folder has a `model.safetensors`, too.
bool is_others(const fs::path& path) {
  std::error_code unknown;
  return !fs::exists(path / kManifestFile, unknown) && is_safetensors_model(path);
}

}  // namespace

std::vector<fs::path> sources_at(const fs::path& path) {
  return is_others(path) ? std::vector{path} : candidates_at(path);
}

Checkpoint open_source(const fs::path& path) {
  return is_others(path) ? open_safetensors_model(path) : open_checkpoint(path);
}

}  // namespace phalanx
