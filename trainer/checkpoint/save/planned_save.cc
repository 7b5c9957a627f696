// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/planned_save.h"

#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <chrono>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/version.h"
#include "trainer/checkpoint/box_values.h"
#include "trainer/checkpoint/format/attachments.h"
#include "trainer/checkpoint/format/checked_file.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/checkpoint/format/sha256.h"
#include "trainer/checkpoint/save/hosts.h"
#include "trainer/checkpoint/save/kept_plan.h"
#include "trainer/checkpoint/save/planned_manifest.h"
#include "trainer/checkpoint/save/together.h"
#include "trainer/host/host.h"
#include "trainer/io/file.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Views = std::vector<ShardedTensorView>;

/// Every rank's states, on every rank; rank 0 has them written.
Views exchange_rng_states(const Ranks& ranks, const RngStates& mine) {
  Views views;
  for (const auto& [device, state] : mine) {
    const at::Tensor all = tensors::empty({ranks.world_size(), state.numel()}, state.options());
    ranks.all_gather(all, state.contiguous());
    for (int64_t rank = 0; rank < ranks.world_size(); ++rank) {
      views.push_back(whole_tensor(rng_prefix(rank) + device, all[rank]));
    }
  }
  return views;
}

}  // namespace

PlannedSave::PlannedSave(fs::path checkpoints_dir, Snapshot snapshot, SaveOptions options,
                         const Ranks& ranks)
    : folder_(std::move(checkpoints_dir)),
      snapshot_(std::move(snapshot)),
      options_(std::move(options)) {
  to_prune(std::vector<Retained>(),
           options_.retention);  // throws for impossible numbers, before anything is written
  saved_.path = folder_ / step_folder_name(step());
  add_part(std::string(kModelPart), Layout::whole, std::move(snapshot_.model));
  add_part(std::string(kOptimizerPart), Layout::slices, std::move(snapshot_.optimizer));
  add_part(std::string(kRngPart), Layout::whole, exchange_rng_states(ranks, snapshot_.rng_states));
  std::vector<std::string_view> names;
  for (const StatePart& part : snapshot_.parts) names.push_back(part.name);
  require_part_names(names);
  for (StatePart& part : snapshot_.parts) {
    if (!part.tensors.empty()) add_part(part.name, Layout::slices, std::move(part.tensors));
  }
  const std::string host = options_.host.empty() ? host_identity() : options_.host;
  const auto make = [&] { return make_plan(ranks, host); };
  plan_ =
      options_.kept_plan == nullptr
          ? std::make_shared<const WritePlan>(make())
          : options_.kept_plan->get(brought_to_plan(views_, host, options_.limits), ranks, make);
}

void PlannedSave::add_part(std::string name, Layout layout, std::vector<ShardedTensorView> views) {
  parts_.push_back({.name = std::move(name), .layout = layout, .tensors = {}});
  for (ShardedTensorView& view : views) {
    if (!view.box) continue;
    require_sound(view);
    TensorPart part = without_needless_box(view.shape, view.part());
    view.box = std::move(part.box);
    view.begin = part.begin;
    view.end = part.end;
  }
  views_.push_back(std::move(views));
}

WritePlan PlannedSave::make_plan(const Ranks& ranks, const std::string& host) const {
  std::vector<PlannedPart> parts = parts_;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    parts[part].tensors = exchange_slices(ranks, views_[part]);
  }
  return plan_writes(std::move(parts), exchange_hosts(ranks, host), options_.limits);
}

const ShardedTensorView& PlannedSave::view_of(const PlannedPiece& piece) const {
  return views_[static_cast<std::size_t>(piece.part)][static_cast<std::size_t>(piece.tensor)];
}

at::Tensor PlannedSave::values(std::size_t index) const {
  const PlannedPiece& piece = plan_->pieces[index];
  const ShardedTensorView& view = view_of(piece);
  if (!piece.is_put_together) {
    return flat_range(view.local, piece.begin - view.begin, piece.end - piece.begin);
  }
  return packed(view.local, view.part().in(view.shape), share_of(tensor_of(*plan_, piece), piece));
}

void PlannedSave::forget_tensors() { views_.clear(); }

SavedCheckpoint PlannedSave::run(const Ranks& ranks, const PieceValues& values) {
  const auto start = std::chrono::steady_clock::now();
  together(ranks, [&] { stage(ranks); });
  write(ranks, ranks.broadcast(staged_ ? staged_->path().string() : std::string()), values);
  together(ranks, [&] {
    if (ranks.is_first()) commit(manifest(ranks));
  });
  saved_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (ranks.is_first()) remove_old();
  return saved_;
}

// A checkpoint that cannot be removed costs space, not safety: the run goes on.
void PlannedSave::remove_old() {
  Retention retention = options_.retention;
  retention.newest_step = step();
  try {
    for (auto& warning : prune(folder_, retention)) saved_.warnings.push_back(std::move(warning));
  } catch (const std::exception& error) {
    saved_.warnings.push_back(fmt::format("old checkpoints stay: {}", error.what()));
  }
}

/// On rank 0: the folder, beside its final place.
void PlannedSave::stage(const Ranks& ranks) {
  if (!ranks.is_first()) return;
  create_folders(folder_);
  previous_ = read_latest(folder_);
  staged_.emplace(saved_.path);
}

// What a rank writes, and what it reads again for SHA-256.
uint64_t PlannedSave::bytes_to_do(int64_t rank) const {
  uint64_t bytes = bytes_written_by(*plan_, rank);
  if (!options_.sha256) return bytes;
  for (const PlannedFile& file : plan_->files) bytes += file.maker == rank ? file.size : 0;
  return bytes;
}

void PlannedSave::write(const Ranks& ranks, const fs::path& staged, const PieceValues& values) {
  if (options_.progress != nullptr) options_.progress->begin(bytes_to_do(ranks.rank()));
  PieceWriter writer(*plan_, staged, ranks, options_.progress);
  together(ranks, [&] { writer.make_files(); });
  std::vector<uint64_t> mine;
  together(ranks, [&] { mine = writer.write(values); });
  checksums_ = ranks.all_gather(
      std::string(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(uint64_t)));
  for (const PlannedFile& file : plan_->files) saved_.bytes += file.size;
  if (options_.sha256) sum_files(ranks, staged);
}

/// Who has made a file reads it, when all have written into it.
void PlannedSave::sum_files(const Ranks& ranks, const fs::path& staged) {
  std::map<std::string, std::string> mine;
  together(ranks, [&] {
    for (const PlannedFile& file : plan_->files) {
      if (file.maker != ranks.rank()) continue;
      mine[file.name] = sha256_of(staged / file.name, options_.progress);
    }
  });
  for (const std::string& sums : ranks.all_gather(format_sha256_sums(mine))) {
    sha256_.merge(parse_sha256_sums(sums));
  }
}

Manifest PlannedSave::manifest(const Ranks& ranks) const {
  Manifest manifest;
  manifest.state = snapshot_.state;
  manifest.config = snapshot_.config;
  manifest.data_fingerprint = snapshot_.data_fingerprint;
  manifest.seed = snapshot_.seed;
  manifest.global_batch_size = snapshot_.global_batch_size;
  manifest.world_size = ranks.world_size();
  manifest.metrics = snapshot_.metrics;
  manifest.reduction_order = snapshot_.reduction_order;
  manifest.base = snapshot_.base;
  for (const StatePart& part : snapshot_.parts) {
    if (!part.json.empty()) manifest.parts[part.name] = part.json;
  }
  manifest.previous = previous_;
  manifest.phalanx_version = kVersion;
  manifest.torch_version = TORCH_VERSION;
  list_planned(*plan_, checksums_, manifest);
  return manifest;
}

void PlannedSave::write_attached(Manifest& manifest) {
  if (!snapshot_.attachments) return;
  manifest.attachments = write_attachments(staged_->path(), *snapshot_.attachments);
  if (!options_.sha256) return;
  for (const auto& [name, file] : manifest.attachments) {
    const std::string path = fmt::format("{}/{}", kAttachmentsFolder, name);
    sha256_[path] = sha256_of(staged_->path() / path);
  }
}

void PlannedSave::commit(Manifest manifest) {
  write_attached(manifest);
  // One file needs no index to be opened by.
  if (!manifest.files.contains("model.safetensors")) {
    const fs::path path = staged_->path() / kSafetensorsIndex;
    manifest.files[kSafetensorsIndex] = write_text(path, index_of(*plan_, kModelPart));
    if (options_.sha256) sha256_[kSafetensorsIndex] = sha256_of(path);
  }
  if (options_.sha256) {
    manifest.files[std::string(kSha256File)] =
        write_text(staged_->path() / kSha256File, format_sha256_sums(sha256_));
  }
  write_text(staged_->path() / kManifestFile, format_manifest(manifest));
  staged_->commit();
  try {
    point_latest_at(folder_, step());
  } catch (const std::exception& error) {
    // It is committed, and found by what it came after.
    saved_.warnings.push_back(fmt::format("'{}' may still name '{}', not '{}': {}", kLatestFile,
                                          previous_, step_folder_name(step()), error.what()));
  }
}

}  // namespace phalanx
