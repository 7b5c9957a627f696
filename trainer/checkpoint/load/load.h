// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/api/stateful.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/io/byte_progress.h"
#include "trainer/tensors/random.h"

namespace phalanx {

/// A checkpoint whose manifest is sound. What is in its files is compared with their sizes and
/// checksums when it is read.
struct Checkpoint {
  std::filesystem::path path;  ///< Its folder.
  Manifest manifest;
};

/// Throws CheckpointError naming what is wrong, or IoError.
Checkpoint open_checkpoint(const std::filesystem::path& path);

/// Compares the sizes and heads of all files, and all of attachments, which loading does of those
/// that it reads. Throws CheckpointError naming what is wrong, or IoError.
void require_files(const Checkpoint& checkpoint);

/// Bytes that this rank holds of the views.
uint64_t local_bytes(std::span<const ShardedTensorView> views);

/// What one rank has loaded.
struct Loaded {
  RngStates rng_states;     ///< Empty for a rank that there was not when this was saved.
  uint64_t bytes_read = 0;  ///< Bytes of tensors.
};

/// Fills the views of model and optimizer, whatever ranks saved them, by reading what this rank
/// holds and no more than a chunk beside it. Names, shapes and dtypes are all compared before the
/// first byte is written: throws UserError that lists what differs, names missing or unexpected
/// with their nearest match. Throws CheckpointError where what it reads is damaged, when some views
/// may have been filled: load another checkpoint then. `progress`, where given, tells how far that
/// is. Of `parts` it fills the tensors of those that the checkpoint has (further_parts), and leaves
/// the others alone. These are filled last, in their order: their tensors may lie in the memory of
/// `model` and `optimizer`, whose values they replace.
Loaded load_checkpoint(const Checkpoint& checkpoint, std::span<const ShardedTensorView> model,
                       std::span<const ShardedTensorView> optimizer, int64_t rank = 0,
                       ByteProgress* progress = nullptr, std::span<const StatePart> parts = {});

/// As load_checkpoint, for the model alone: to evaluate it.
Loaded load_model(const Checkpoint& checkpoint, std::span<const ShardedTensorView> model,
                  ByteProgress* progress = nullptr);

}  // namespace phalanx
