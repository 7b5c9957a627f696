// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/named_values.h"
#include "trainer/api/state.h"
#include "trainer/checkpoint/format/contents.h"

namespace phalanx {

/// What the names, in their part, of the states of a rank's generators begin with; the type of
/// their device follows: "rank_0.cpu".
std::string rng_prefix(int64_t rank);

/// What a checkpoint says of itself: manifest.json, whose presence makes the folder a checkpoint.
/// docs/checkpoint_format.md describes its text.
struct Manifest : Contents {
  /// Of a manifest with boxes. Without them it is written as the version before, which programs
  /// that know of no boxes read.
  static constexpr int64_t kFormatVersion = 3;
  static constexpr int64_t kVersionWithoutBoxes = 2;

  State state;
  std::string config = "{}";      ///< The run's resolved config, as JSON text.
  std::string data_fingerprint;   ///< BatchSource::fingerprint of the training data.
  uint64_t seed = 0;              ///< The seed of the sample order.
  int64_t global_batch_size = 1;  ///< Samples an optimizer step over all ranks.
  int64_t world_size = 1;         ///< Ranks that took part.
  NamedValues metrics;            ///< Measured with these weights, for lists and for "best".
  std::vector<std::string> reduction_order;  ///< ParallelEngine::reduction_order.
  /// By name in the folder `attachments`; all of each is its head.
  std::map<std::string, ManifestFile> attachments;
  /// The JSON of parts beside model, optimizer and rng (Stateful), by the part's name.
  std::map<std::string, std::string> parts;
  /// fingerprint_of what the model's tensors are adapters of; empty: they are the model.
  std::string base;
  std::string previous;  ///< What `latest` named when this was saved; may be empty.
  std::string phalanx_version;
  std::string torch_version;
};

/// All that a checkpoint lists, by path in its folder: files and attachments.
std::map<std::string, ManifestFile> listed_files(const Manifest& manifest);

/// The names of the parts beside model, optimizer and rng, those of JSON alone among them.
std::set<std::string> further_parts(const Manifest& manifest);

/// The text of manifest.json. Its last field is a checksum of all the text before it.
/// Throws std::logic_error when `config`, or the text of a part, is no JSON.
std::string format_manifest(const Manifest& manifest);

/// The reverse; `path` is for messages. Throws CheckpointError when the text is damaged, is of
/// another format version or breaks a rule (manifest_rules.h).
Manifest parse_manifest(std::string_view text, const std::filesystem::path& path);

/// Reads `<checkpoint>/manifest.json`. Throws CheckpointError or IoError.
Manifest load_manifest(const std::filesystem::path& checkpoint);

}  // namespace phalanx
