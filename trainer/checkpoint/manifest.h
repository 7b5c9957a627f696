// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/core/named_values.h"
#include "trainer/core/state.h"

namespace phalanx {

/// Which tensors of a checkpoint: names are unique within a part.
inline constexpr std::string_view kModelPart = "model";
inline constexpr std::string_view kOptimizerPart = "optimizer";
inline constexpr std::string_view kRngPart = "rng";

/// What the names, in their part, of the states of a rank's generators begin with; the type of
/// their device follows: "rank_0.cpu".
std::string rng_prefix(int64_t rank);

/// A contiguous range of a flattened, row-major tensor, and where its bytes stand.
struct ManifestSlice {
  int64_t begin = 0;                ///< First element.
  int64_t end = 0;                  ///< One past the last.
  std::string file;                 ///< A name in the checkpoint's folder.
  uint64_t offset = 0;              ///< Of the first byte, counted from the file's start.
  std::vector<uint64_t> checksums;  ///< Of each chunk of Manifest::chunk_bytes of its bytes.
};

/// A global tensor, and the slices that make it up, in order, without gap or overlap.
struct ManifestTensor {
  std::string part;
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  std::vector<ManifestSlice> slices;  ///< None: it has no elements.
};

/// A file of a checkpoint. What follows its head are slices, without gap or overlap.
struct ManifestFile {
  uint64_t size = 0;           ///< Bytes.
  uint64_t head_bytes = 0;     ///< Before the first slice: of a text file, all.
  uint64_t head_checksum = 0;  ///< Of these.
};

/// What a checkpoint says of itself: manifest.json, whose presence makes the folder a checkpoint.
/// docs/checkpoint_format.md tells of its text.
struct Manifest {
  static constexpr int64_t kFormatVersion = 2;
  static constexpr uint64_t kLeastChunkBytes = uint64_t{64} << 10;

  State state;
  std::string config = "{}";      ///< The run's resolved config, as JSON text.
  std::string data_fingerprint;   ///< BatchSource::fingerprint of the training data.
  uint64_t seed = 0;              ///< Of the sample order.
  int64_t global_batch_size = 1;  ///< Samples an optimizer step over all ranks.
  int64_t world_size = 1;         ///< Ranks that took part.
  NamedValues metrics;            ///< Measured with these weights, for lists and for "best".
  std::string previous;           ///< What `latest` named when this was saved; may be empty.
  std::string phalanx_version;
  std::string torch_version;
  /// What one checksum of a slice is of; 0: there are none, as in a folder that others wrote.
  uint64_t chunk_bytes = kLeastChunkBytes;
  std::map<std::string, ManifestFile> files;  ///< By name in the checkpoint's folder.
  std::vector<ManifestTensor> tensors;
};

/// The text of manifest.json. Its last field is a checksum of all the text before it.
/// Throws std::logic_error when `config` is no JSON.
std::string format_manifest(const Manifest& manifest);

/// The reverse; `path` is for messages. Throws CheckpointError when the text is damaged, is of
/// another format version or breaks a rule (manifest_rules.h).
Manifest parse_manifest(std::string_view text, const std::filesystem::path& path);

/// Reads `<checkpoint>/manifest.json`. Throws CheckpointError or IoError.
Manifest load_manifest(const std::filesystem::path& checkpoint);

}  // namespace phalanx
