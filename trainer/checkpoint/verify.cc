#include "trainer/checkpoint/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/checkpoint/checkpoint_error.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/slice_reader.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using SlicePointer = std::pair<const ManifestTensor*, const ManifestSlice*>;

// A slice may be a tensor of its own in the file, or a part of one: it lies in an entry of its
// dtype.
void require_agreement(const fs::path& path, const SafetensorsFile& file,
                       const std::vector<SlicePointer>& slices) {
  for (const auto& [tensor, slice] : slices) {
    const uint64_t size =
        static_cast<uint64_t>(slice->end - slice->begin) * c10::elementSize(tensor->dtype);
    const auto& entries = file.header().entries;
    const bool is_there = std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
      const bool is_its = entry.name == tensor->name || entry.name.starts_with(tensor->name + "[");
      return is_its && entry.dtype == tensor->dtype &&
             file.data_start() + entry.begin <= slice->offset &&
             slice->offset + size <= file.data_start() + entry.end;
    });
    if (is_there) continue;
    throw CheckpointError(fmt::format("'{}' and its manifest disagree on {} tensor '{}'",
                                      path.string(), tensor->part, tensor->name));
  }
}

void require_agreement(const Checkpoint& checkpoint) {
  std::map<std::string_view, std::vector<SlicePointer>> slices_of;
  for (const ManifestTensor& tensor : checkpoint.manifest.tensors) {
    for (const ManifestSlice& slice : tensor.slices) {
      slices_of[slice.file].emplace_back(&tensor, &slice);
    }
  }
  for (const auto& [name, file] : checkpoint.manifest.files) {
    if (!name.ends_with(".safetensors")) continue;
    const fs::path path = checkpoint.path / name;
    require_agreement(path, SafetensorsFile(path), slices_of[name]);
  }
}

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
  require_agreement(checkpoint);
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
