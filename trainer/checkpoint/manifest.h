#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/safetensors.h"
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

/// Where the elements [begin, end) of one flattened global tensor stand.
struct ManifestTensor {
  std::string part;
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;  ///< Of the global tensor.
  int64_t begin = 0;           ///< First element of this slice.
  int64_t end = 0;             ///< One past the last.
  std::string file;            ///< A name in the checkpoint's folder.
  uint64_t byte_begin = 0;     ///< Place in that file, counted from the file's start.
  uint64_t byte_end = 0;
};

/// What a checkpoint says of itself: manifest.json, whose presence makes the folder a checkpoint.
struct Manifest {
  static constexpr int64_t kFormatVersion = 1;

  State state;
  std::string config = "{}";      ///< The run's resolved config, as JSON text.
  std::string data_fingerprint;   ///< BatchSource::fingerprint of the training data.
  uint64_t seed = 0;              ///< Of the sample order.
  int64_t global_batch_size = 0;  ///< Samples an optimizer step over all ranks.
  int64_t world_size = 1;         ///< Ranks that took part.
  NamedValues metrics;            ///< Last known values, for lists and for "best".
  std::string previous;           ///< What `latest` named when this was saved; may be empty.
  std::string phalanx_version;
  std::string torch_version;
  std::vector<ManifestTensor> tensors;
  std::map<std::string, FileSummary> files;  ///< By name in the checkpoint's folder.
};

/// The text of manifest.json. Its last field is a checksum of all the text before it.
/// Throws std::logic_error when `config` is no JSON.
std::string format_manifest(const Manifest& manifest);

/// The reverse; `path` is for messages. Throws CheckpointError when the text is damaged, is of
/// another format version or names a file outside of its folder.
Manifest parse_manifest(std::string_view text, const std::filesystem::path& path);

/// Reads `<checkpoint>/manifest.json`. Throws CheckpointError or IoError.
Manifest load_manifest(const std::filesystem::path& checkpoint);

}  // namespace phalanx
