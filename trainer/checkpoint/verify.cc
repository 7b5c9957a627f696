#include "trainer/checkpoint/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/checkpoint/checkpoint_error.h"
#include "trainer/checkpoint/header_agreement.h"
#include "trainer/checkpoint/sha256.h"
#include "trainer/checkpoint/slice_reader.h"
#include "trainer/core/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using SlicePointer = std::pair<const ManifestTensor*, const ManifestSlice*>;

// Takes one slice after the other until there is none, or one is damaged.
void verify_slices(const Checkpoint& checkpoint, const std::vector<SlicePointer>& slices,
                   std::atomic<std::size_t>& next, std::atomic<uint64_t>& bytes_done) {
  SliceReader reader(checkpoint.path, checkpoint.manifest);
  for (std::size_t i = next++; i < slices.size(); i = next++) {
    try {
      const uint64_t before = reader.bytes_read();
      reader.verify(*slices[i].first, *slices[i].second);
      bytes_done += reader.bytes_read() - before;
    } catch (...) {
      next = slices.size();
      throw;
    }
  }
}

// What somebody changed with the right checksums has another digest.
void verify_sha256(const Checkpoint& checkpoint) {
  const std::string name(kSha256File);
  const auto& files = checkpoint.manifest.files;
  if (!files.contains(name)) return;
  const auto sums = parse_sha256_sums(read_text(checkpoint.path / name, files.at(name).size));
  for (const auto& [file, description] : files) {
    if (file == name) continue;
    const auto expected = sums.find(file);
    if (expected == sums.end() || expected->second != sha256_of(checkpoint.path / file)) {
      throw CheckpointError(fmt::format("'{}' is damaged: its SHA-256 is not the one in {}",
                                        (checkpoint.path / file).string(), name));
    }
  }
}

}  // namespace

Checkpoint verify_checkpoint(const fs::path& path, std::atomic<uint64_t>* bytes_done) {
  std::atomic<uint64_t> unseen = 0;
  std::atomic<uint64_t>& done = bytes_done == nullptr ? unseen : *bytes_done;
  Checkpoint checkpoint = open_checkpoint(path);
  require_files(checkpoint);
  require_headers_agree(checkpoint);
  std::vector<SlicePointer> slices;
  for (const ManifestTensor& tensor : checkpoint.manifest.tensors) {
    for (const ManifestSlice& slice : tensor.slices) slices.emplace_back(&tensor, &slice);
  }
  std::atomic<std::size_t> next = 0;
  std::vector<std::future<void>> workers;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    workers.push_back(
        std::async(std::launch::async, [&] { verify_slices(checkpoint, slices, next, done); }));
  }
  for (auto& worker : workers) worker.wait();
  for (auto& worker : workers) worker.get();
  verify_sha256(checkpoint);
  return checkpoint;
}

}  // namespace phalanx
