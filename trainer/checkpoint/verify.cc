#include "trainer/checkpoint/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
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

using Work = std::function<void(std::size_t)>;

// Does so many pieces of work on all cores, each worker with tools of its own; after the first that
// fails no other begins.
void on_all_cores(std::size_t count, const std::function<Work()>& make_worker) {
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    try {
      const Work work = make_worker();
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      throw;
    }
  };
  std::vector<std::future<void>> workers;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    workers.push_back(std::async(std::launch::async, run));
  }
  for (auto& worker : workers) worker.wait();
  for (auto& worker : workers) worker.get();
}

void verify_slices(const Checkpoint& checkpoint, std::atomic<uint64_t>& bytes_done) {
  std::vector<SlicePointer> slices;
  for (const ManifestTensor& tensor : checkpoint.manifest.tensors) {
    for (const ManifestSlice& slice : tensor.slices) slices.emplace_back(&tensor, &slice);
  }
  on_all_cores(slices.size(), [&]() -> Work {
    auto reader = std::make_shared<SliceReader>(checkpoint.path, checkpoint.manifest);
    return [&slices, &bytes_done, reader](std::size_t i) {
      const uint64_t before = reader->bytes_read();
      reader->verify(*slices[i].first, *slices[i].second);
      bytes_done += reader->bytes_read() - before;
    };
  });
}

void verify_sha256(const Checkpoint& checkpoint, std::atomic<uint64_t>& bytes_done) {
  const auto& files = checkpoint.manifest.files;
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
      if (expected == sums.end() || expected->second != sha256_of(path)) {
        throw CheckpointError(
            fmt::format("'{}' is damaged: its SHA-256 is not the one in {}", path.string(), name));
      }
      bytes_done += files.at(listed[i]).size;
    };
  });
}

}  // namespace

Checkpoint verify_checkpoint(const fs::path& path, std::atomic<uint64_t>* bytes_done) {
  std::atomic<uint64_t> unseen = 0;
  std::atomic<uint64_t>& done = bytes_done == nullptr ? unseen : *bytes_done;
  Checkpoint checkpoint = open_checkpoint(path);
  require_files(checkpoint);
  require_headers_agree(checkpoint);
  verify_slices(checkpoint, done);
  verify_sha256(checkpoint, done);
  return checkpoint;
}

uint64_t bytes_to_verify(const Manifest& manifest) {
  uint64_t bytes = 0;
  for (const auto& [name, file] : manifest.files) bytes += file.size;
  return manifest.files.contains(std::string(kSha256File)) ? 2 * bytes : bytes;
}

}  // namespace phalanx
