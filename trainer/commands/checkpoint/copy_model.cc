// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/checkpoint/copy_model.h"

#include <fmt/format.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "trainer/base/version.h"
#include "trainer/checkpoint/format/attachments.h"
#include "trainer/checkpoint/format/checked_file.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/io/byte_progress.h"
#include "trainer/io/bytes_text.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/progress_line.h"

namespace phalanx {

Contents copy_model(const ModelCopy& copy, const std::filesystem::path& folder,
                    const std::string& what) {
  ByteProgress progress;
  Contents written;
  Console console(STDERR_FILENO);
  with_progress(console, what, progress, [&] { written = copy.write(folder, &progress); });
  return written;
}

void write_model_manifest(Contents model, const Attachments& attachments, std::string config,
                          std::string base, const std::filesystem::path& folder) {
  Manifest manifest{std::move(model)};
  manifest.attachments = write_attachments(folder, attachments);
  manifest.config = std::move(config);
  manifest.base = std::move(base);
  manifest.phalanx_version = kVersion;
  manifest.torch_version = TORCH_VERSION;
  write_text(folder / kManifestFile, format_manifest(manifest));
}

std::string summary_of(const Contents& model) {
  uint64_t bytes = 0;
  for (const auto& [name, file] : model.files) bytes += file.size;
  const auto files = std::count_if(model.files.begin(), model.files.end(), [](const auto& file) {
    return file.first.ends_with(".safetensors");
  });
  return fmt::format("{} tensors, {} in {} file{}", model.tensors.size(), bytes_text(bytes), files,
                     files == 1 ? "" : "s");
}

}  // namespace phalanx
