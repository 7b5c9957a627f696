// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/verify.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/header_agreement.h"
#include "trainer/checkpoint/format/manifest_rules.h"
#include "trainer/checkpoint/format/sha256.h"
#include "trainer/checkpoint/load/slice_reader.h"
#include "trainer/checkpoint/on_all_cores.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using SlicePointer = std::pair<const ManifestTensor*, const ManifestSlice*>;

// Each tensor, and each file once more for its SHA-256.
uint64_t bytes_to_verify(const Manifest& manifest) {
  uint64_t bytes = 0;
  for (const ManifestTensor& tensor : manifest.tensors) {
    for (const ManifestSlice& slice : tensor.slices) bytes += bytes_in(tensor, slice);
  }
  if (!manifest.files.contains(std::string(kSha256File))) return bytes;
  for (const auto& [name, file] : listed_files(manifest)) {
    bytes += name == kSha256File ? 0 : file.size;
  }
  return bytes;
}

void verify_slices(const Checkpoint& checkpoint, ByteProgress& progress) {
  std::vector<SlicePointer> slices;
  for (const ManifestTensor& tensor : checkpoint.manifest.tensors) {
    for (const ManifestSlice& slice : tensor.slices) slices.emplace_back(&tensor, &slice);
  }
  on_all_cores(slices.size(), [&]() -> Work {
    auto reader = std::make_shared<SliceReader>(checkpoint.path, checkpoint.manifest, &progress);
    return
        [&slices, reader](std::size_t i) { reader->verify(*slices[i].first, *slices[i].second); };
  });
}

void verify_sha256(const Checkpoint& checkpoint, ByteProgress& progress) {
  const auto files = listed_files(checkpoint.manifest);
  const std::string name(kSha256File);
  if (!files.contains(name)) return;
  const auto sums = parse_sha256_sums(read_text(checkpoint.path / name, files.at(name).size));
  std::vector<std::string> listed;
  for (const auto& [file, description] : files) {
    if (file != name) listed.push_back(file);
  }
  on_all_cores(listed.size(), [&]() -> Work {
    return [&](std::size_t i) {
      const auto path = checkpoint.path / listed[i];
      const auto expected = sums.find(listed[i]);
      if (expected == sums.end() || expected->second != sha256_of(path, &progress)) {
        throw CheckpointError(
            fmt::format("'{}' is damaged: its SHA-256 is not the one in {}", path.string(), name));
      }
    };
  });
}

}  // namespace

Checkpoint verify_checkpoint(const fs::path& path, ByteProgress* progress) {
  ByteProgress unseen;
  ByteProgress& shown = progress == nullptr ? unseen : *progress;
  Checkpoint checkpoint = open_checkpoint(path);
  shown.begin(bytes_to_verify(checkpoint.manifest));
  require_files(checkpoint);
  require_headers_agree(checkpoint);
  verify_slices(checkpoint, shown);
  verify_sha256(checkpoint, shown);
  return checkpoint;
}

}  // namespace phalanx
