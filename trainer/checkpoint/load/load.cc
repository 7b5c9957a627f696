// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/attachments.h"
#include "trainer/checkpoint/format/checked_file.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/manifest_rules.h"
#include "trainer/checkpoint/load/mismatch.h"
#include "trainer/checkpoint/load/slice_reader.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Views = std::span<const ShardedTensorView>;

/// Bytes; LibTorch's have 5,056 and 16.
constexpr int64_t kLargestRngState = int64_t{1} << 20;

// The tensors of one part by name.
std::map<std::string_view, const ManifestTensor*> tensors_of(const Contents& contents,
                                                             std::string_view part) {
  std::map<std::string_view, const ManifestTensor*> tensors;
  for (const ManifestTensor& tensor : contents.tensors) {
    if (tensor.part == part) tensors[tensor.name] = &tensor;
  }
  return tensors;
}

void read_part(SliceReader& reader, const Contents& contents, std::string_view part, Views views) {
  const auto tensors = tensors_of(contents, part);
  for (const ShardedTensorView& view : views) {
    reader.read(*tensors.at(view.name), view.part(), view.local);
  }
}

// `other_way`: what else helps.
void require_fit(const Checkpoint& checkpoint, const std::vector<std::string>& mismatches,
                 const std::string& other_way = "") {
  if (mismatches.empty()) return;
  throw UserError(fmt::format(
      "the checkpoint '{}' does not fit this run:\n  {}\nuse the config that it was saved with, "
      "or another checkpoint{}",
      checkpoint.path.string(), fmt::join(mismatches, "\n  "), other_way));
}

RngStates read_rng_states(SliceReader& reader, const Checkpoint& checkpoint, int64_t rank) {
  RngStates states;
  if (rank >= checkpoint.manifest.world_size) return states;
  const std::string prefix = rng_prefix(rank);
  for (const auto& [name, tensor] : tensors_of(checkpoint.manifest, kRngPart)) {
    if (!name.starts_with(prefix) || tensor->dtype != at::kByte) continue;
    if (elements_of(*tensor) > kLargestRngState) {
      throw CheckpointError(fmt::format("'{}' is too large for a generator's state", name));
    }
    const at::Tensor state = tensors::empty({elements_of(*tensor)}, at::kByte);
    reader.read(*tensor, 0, state);
    states.emplace(name.substr(prefix.size()), state);
  }
  if (!states.contains("cpu")) {
    throw CheckpointError(
        fmt::format("the checkpoint '{}' holds no state of rank {}'s CPU generator",
                    checkpoint.path.string(), rank));
  }
  return states;
}

}  // namespace

uint64_t local_bytes(Views views) {
  uint64_t bytes = 0;
  for (const ShardedTensorView& view : views) bytes += view.local.nbytes();
  return bytes;
}

Checkpoint open_checkpoint(const fs::path& path) {
  if (!fs::is_directory(path)) {
    throw CheckpointError(fmt::format("there is no checkpoint '{}'", path.string()));
  }
  if (!fs::exists(path / kManifestFile)) {
    throw CheckpointError(
        fmt::format("'{}' has no {}: it is not a whole checkpoint", path.string(), kManifestFile));
  }
  Checkpoint checkpoint{.path = path, .manifest = load_manifest(path)};
  const auto step = parse_step_folder_name(path.filename().string());
  if (step && *step != checkpoint.manifest.state.step) {
    throw CheckpointError(fmt::format("'{}' holds the manifest of step {}", path.string(),
                                      checkpoint.manifest.state.step));
  }
  return checkpoint;
}

void require_files(const Checkpoint& checkpoint) {
  for (const auto& [name, file] : checkpoint.manifest.files) {
    open_checked(path_of(checkpoint.path, checkpoint.manifest, name), file);
  }
  require_attachments(checkpoint);
}

Loaded load_checkpoint(const Checkpoint& checkpoint, Views model, Views optimizer, int64_t rank,
                       ByteProgress* progress, std::span<const StatePart> parts) {
  std::vector<std::pair<std::string_view, Views>> wanted{{kModelPart, model},
                                                         {kOptimizerPart, optimizer}};
  const std::set<std::string> there = further_parts(checkpoint.manifest);
  for (const StatePart& part : parts) {
    if (there.contains(part.name)) wanted.emplace_back(part.name, part.tensors);
  }
  std::vector<std::string> mismatches;
  bool only_optimizer_differs = true;
  uint64_t bytes = 0;
  for (const auto& [part, views] : wanted) {
    for (auto& text : find_mismatches(checkpoint.manifest, part, views).lines()) {
      mismatches.push_back(std::move(text));
      only_optimizer_differs = only_optimizer_differs && part == kOptimizerPart;
    }
    bytes += local_bytes(views);
  }
  require_fit(
      checkpoint, mismatches,
      only_optimizer_differs
          ? fmt::format("; with another optimizer a new run can begin with its model alone: "
                        "checkpoint.load_from={} checkpoint.load_model_only=true and another "
                        "exp_dir",
                        checkpoint.path.string())
          : "");
  if (progress != nullptr) progress->begin(bytes);
  SliceReader reader(checkpoint.path, checkpoint.manifest, progress);
  Loaded loaded;
  loaded.rng_states = read_rng_states(reader, checkpoint, rank);
  // One after the other, further parts last: those of groups (GroupStates) replace rank 0's values.
  for (const auto& [part, views] : wanted) read_part(reader, checkpoint.manifest, part, views);
  loaded.bytes_read = reader.bytes_read();
  return loaded;
}

Loaded load_model(const Checkpoint& checkpoint, Views model, ByteProgress* progress) {
  require_fit(checkpoint, find_mismatches(checkpoint.manifest, kModelPart, model).lines());
  if (progress != nullptr) progress->begin(local_bytes(model));
  SliceReader reader(checkpoint.path, checkpoint.manifest, progress);
  read_part(reader, checkpoint.manifest, kModelPart, model);
  return {.rng_states = {}, .bytes_read = reader.bytes_read()};
}

}  // namespace phalanx
