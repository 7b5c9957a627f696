// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/sources.h"

#include <system_error>

#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/checkpoint/load/find.h"
#include "trainer/checkpoint/load/foreign.h"

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
  if (!is_others(path)) return candidates_at(path);
  std::error_code unknown;
  if (fs::is_regular_file(path, unknown)) refuse_foreign(path);
  return {path};
}

Checkpoint open_source(const fs::path& path) {
  return is_others(path) ? open_safetensors_model(path) : open_checkpoint(path);
}

}  // namespace phalanx
