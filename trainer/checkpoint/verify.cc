#include "trainer/checkpoint/verify.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/checkpoint/header_agreement.h"
#include "trainer/checkpoint/slice_reader.h"

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
  return checkpoint;
}

}  // namespace phalanx
