#include "trainer/checkpoint/save.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>

#include "trainer/checkpoint/commit.h"
#include "trainer/checkpoint/layout.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/core/io/file.h"
#include "trainer/core/version.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

Manifest describe_snapshot(const Snapshot& snapshot) {
  Manifest manifest;
  manifest.state = snapshot.state;
  manifest.config = snapshot.config;
  manifest.data_fingerprint = snapshot.data_fingerprint;
  manifest.seed = snapshot.seed;
  manifest.global_batch_size = snapshot.global_batch_size;
  manifest.world_size = snapshot.world_size;
  manifest.metrics = snapshot.metrics;
  manifest.phalanx_version = kVersion;
  manifest.torch_version = TORCH_VERSION;
  return manifest;
}

void write_part(std::string_view part, std::span<const ShardedTensorView> views,
                const FetchTensor& fetch, const fs::path& folder, Manifest& manifest) {
  const std::string file = fmt::format("{}.safetensors", part);
  const WrittenSafetensors written = write_safetensors(folder / file, views, fetch);
  manifest.files[file] = written.summary;
  for (const SafetensorsEntry& entry : written.entries) {
    manifest.tensors.push_back({.part = std::string(part),
                                .name = entry.name,
                                .dtype = entry.dtype,
                                .shape = entry.shape,
                                .begin = 0,
                                .end = c10::multiply_integers(entry.shape),
                                .file = file,
                                .byte_begin = written.data_start + entry.begin,
                                .byte_end = written.data_start + entry.end});
  }
}

// Returns the size.
uint64_t write_manifest(const Manifest& manifest, const fs::path& folder) {
  const std::string text = format_manifest(manifest);
  File file(folder / kManifestFile, O_WRONLY | O_CREAT | O_EXCL);
  file.write(text);
  file.sync();
  return text.size();
}

// A checkpoint that cannot be removed costs space, not safety: it is reported, the run goes on.
std::vector<std::string> prune(const fs::path& checkpoints_dir, int64_t saved_step,
                               const Retention& retention) {
  std::vector<std::string> warnings;
  if (!retention.keep_last) return warnings;
  const int64_t kept[] = {saved_step, retention.resumed_step.value_or(saved_step)};
  for (const int64_t step :
       to_prune(committed_steps(checkpoints_dir), *retention.keep_last, kept)) {
    const fs::path path = checkpoints_dir / step_folder_name(step);
    const fs::path doomed = fs::path(path).concat(fmt::format("{}{}", kDeletedMark, ::getpid()));
    try {
      remove_path(doomed);
      rename_path(path, doomed);
      remove_path(doomed);
    } catch (const std::exception& error) {
      warnings.push_back(fmt::format("an old checkpoint stays: {}", error.what()));
    }
  }
  return warnings;
}

}  // namespace

SavedCheckpoint save_checkpoint(const fs::path& checkpoints_dir, const Snapshot& snapshot,
                                const Retention& retention) {
  if (retention.keep_last && *retention.keep_last < 1) {
    throw std::logic_error("keep_last must be at least 1");
  }
  const auto start = std::chrono::steady_clock::now();
  const std::string name = step_folder_name(snapshot.state.step);
  SavedCheckpoint saved;
  saved.path = checkpoints_dir / name;
  create_folders(checkpoints_dir);

  Manifest manifest = describe_snapshot(snapshot);
  manifest.previous = read_latest(checkpoints_dir);
  StagedFolder staged(saved.path);
  write_part(kModelPart, snapshot.model, snapshot.fetch, staged.path(), manifest);
  write_part(kOptimizerPart, snapshot.optimizer, snapshot.fetch, staged.path(), manifest);
  std::vector<ShardedTensorView> rng;
  for (size_t rank = 0; rank < snapshot.rng_states.size(); ++rank) {
    const std::string prefix = rng_prefix(static_cast<int64_t>(rank));
    for (const auto& [device, state] : snapshot.rng_states[rank]) {
      rng.push_back(whole_tensor(prefix + device, state));
    }
  }
  write_part(kRngPart, rng, nullptr, staged.path(), manifest);
  saved.bytes = write_manifest(manifest, staged.path());
  for (const auto& [file, summary] : manifest.files) saved.bytes += summary.size;

  staged.commit();
  replace_file(checkpoints_dir / kLatestFile, name + "\n");
  saved.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  saved.warnings = prune(checkpoints_dir, snapshot.state.step, retention);
  return saved;
}

}  // namespace phalanx
