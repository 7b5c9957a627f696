#include "trainer/checkpoint/load.h"

#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "trainer/checkpoint/checkpoint_error.h"
#include "trainer/checkpoint/checksum.h"
#include "trainer/checkpoint/layout.h"
#include "trainer/checkpoint/mismatch.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/config/user_error.h"
#include "trainer/core/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

void verify_file(const fs::path& path, const FileSummary& expected) {
  const uint64_t size = File(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).size();
  if (size != expected.size) {
    throw CheckpointError(
        fmt::format("'{}' has {} bytes, its manifest says {}: it was cut short "
                    "or replaced",
                    path.string(), size, expected.size));
  }
  if (checksum_of_file(path) != expected.checksum) {
    throw CheckpointError(
        fmt::format("the checksum of '{}' is wrong: its content was damaged or "
                    "is another checkpoint's",
                    path.string()));
  }
}

// The tensors of one part by name.
std::map<std::string, const ManifestTensor*> tensors_of(const Manifest& manifest,
                                                        std::string_view part) {
  std::map<std::string, const ManifestTensor*> tensors;
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (tensor.part == part) tensors[tensor.name] = &tensor;
  }
  return tensors;
}

// Reads from the files of one checkpoint. Everything is planned, which checks it, before the first
// byte goes into a destination.
class Reader {
 public:
  explicit Reader(const VerifiedCheckpoint& checkpoint) : checkpoint_(checkpoint) {}

  /// To read a tensor's elements from `first` on, as many as the destination has.
  void plan(const ManifestTensor& tensor, const at::Tensor& destination, int64_t first = 0) {
    const SafetensorsFile& file = open(tensor.file);
    const SafetensorsEntry* entry = file.find(tensor.name);
    if (entry == nullptr || entry->dtype != tensor.dtype || entry->shape != tensor.shape ||
        file.data_start() + entry->begin != tensor.byte_begin) {
      throw CheckpointError(fmt::format("'{}' and its manifest disagree on tensor '{}'",
                                        (checkpoint_.path / tensor.file).string(), tensor.name));
    }
    reads_.push_back({&file, entry, destination, first});
  }

  void run() const {
    for (const Read& read : reads_)
      read.file->read_range_into(*read.entry, read.first, read.destination);
  }

 private:
  struct Read {
    const SafetensorsFile* file;
    const SafetensorsEntry* entry;
    at::Tensor destination;
    int64_t first;
  };

  const SafetensorsFile& open(const std::string& name) {
    return files_.try_emplace(name, checkpoint_.path / name).first->second;
  }

  const VerifiedCheckpoint& checkpoint_;
  std::map<std::string, SafetensorsFile> files_;
  std::vector<Read> reads_;
};

void plan_part(Reader& reader, const Manifest& manifest, std::string_view part,
               std::span<const ShardedTensorView> views) {
  const auto tensors = tensors_of(manifest, part);
  for (const ShardedTensorView& view : views) {
    reader.plan(*tensors.at(view.name), view.local, view.begin);
  }
}

void require_fit(const VerifiedCheckpoint& checkpoint, const std::vector<std::string>& mismatches) {
  if (mismatches.empty()) return;
  throw UserError(fmt::format(
      "the checkpoint '{}' does not fit this run:\n  {}\nuse the config that it was saved with, "
      "or another checkpoint",
      checkpoint.path.string(), fmt::join(mismatches, "\n  ")));
}

// Empty tensors for the states of a rank's generators, planned to be read.
RngStates plan_rng(Reader& reader, const VerifiedCheckpoint& checkpoint, int64_t rank) {
  RngStates states;
  if (rank >= checkpoint.manifest.world_size) return states;
  const std::string prefix = rng_prefix(rank);
  for (const auto& [name, tensor] : tensors_of(checkpoint.manifest, kRngPart)) {
    if (!name.starts_with(prefix) || tensor->dtype != at::kByte) continue;
    // Sized by a range within a file whose size was verified: a manifest cannot make this large.
    const auto bytes = static_cast<int64_t>(tensor->byte_end - tensor->byte_begin);
    const at::Tensor state = at::empty({bytes}, at::kByte);
    reader.plan(*tensor, state);
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

VerifiedCheckpoint verify_checkpoint(const fs::path& checkpoint) {
  if (!fs::is_directory(checkpoint)) {
    throw CheckpointError(fmt::format("there is no checkpoint '{}'", checkpoint.string()));
  }
  if (!fs::exists(checkpoint / kManifestFile)) {
    throw CheckpointError(fmt::format("'{}' has no {}: it is not a whole checkpoint",
                                      checkpoint.string(), kManifestFile));
  }
  VerifiedCheckpoint verified{.path = checkpoint, .manifest = load_manifest(checkpoint)};
  const auto step = parse_step_folder_name(checkpoint.filename().string());
  if (step && *step != verified.manifest.state.step) {
    throw CheckpointError(fmt::format("'{}' holds the manifest of step {}", checkpoint.string(),
                                      verified.manifest.state.step));
  }
  for (const auto& [name, summary] : verified.manifest.files) {
    verify_file(checkpoint / name, summary);
  }
  return verified;
}

RngStates load_checkpoint(const VerifiedCheckpoint& checkpoint,
                          std::span<const ShardedTensorView> model,
                          std::span<const ShardedTensorView> optimizer, int64_t rank) {
  std::vector<std::string> mismatches = find_mismatches(checkpoint.manifest, kModelPart, model);
  for (std::string& text : find_mismatches(checkpoint.manifest, kOptimizerPart, optimizer)) {
    mismatches.push_back(std::move(text));
  }
  require_fit(checkpoint, mismatches);
  Reader reader(checkpoint);
  plan_part(reader, checkpoint.manifest, kModelPart, model);
  plan_part(reader, checkpoint.manifest, kOptimizerPart, optimizer);
  RngStates rng_states = plan_rng(reader, checkpoint, rank);
  reader.run();
  return rng_states;
}

void load_model(const VerifiedCheckpoint& checkpoint, std::span<const ShardedTensorView> model) {
  require_fit(checkpoint, find_mismatches(checkpoint.manifest, kModelPart, model));
  Reader reader(checkpoint);
  plan_part(reader, checkpoint.manifest, kModelPart, model);
  reader.run();
}

}  // namespace phalanx
