#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "trainer/checkpoint/load.h"

namespace phalanx {

/// Reads every byte of a checkpoint, on all cores, and compares; model and optimizer files must
/// also be sound safetensors files that agree with the manifest, and SHA256SUMS, where there is
/// one, fit all files. Throws CheckpointError naming what is wrong, or IoError. `bytes_done`, where
/// given, grows as files are read.
Checkpoint verify_checkpoint(const std::filesystem::path& path,
                             std::atomic<uint64_t>* bytes_done = nullptr);

/// Bytes that verify_checkpoint reads.
uint64_t bytes_to_verify(const Manifest& manifest);

}  // namespace phalanx
