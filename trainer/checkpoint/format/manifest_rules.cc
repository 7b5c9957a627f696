// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/manifest_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <utility>

#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/manifest.h"

namespace phalanx {
namespace {

constexpr uint64_t kLargestChunk = uint64_t{1} << 30;
/// A safetensors header's bytes, and those of the length before it: heads are read at once.
constexpr uint64_t kLargestHead = 100'000'008;

struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  auto operator<=>(const ByteRange&) const = default;
};
using RangesOfFiles = std::map<std::string_view, std::vector<ByteRange>>;

std::string name_of(const ManifestTensor& tensor) {
  return fmt::format("{} tensor '{}'", tensor.part, tensor.name);
}

void require_names(const Contents& contents) {
  for (const auto& [name, file] : contents.files) {
    if (!is_plain_file_name(name) || name == kManifestFile) {
      throw CheckpointError(fmt::format("it names the file '{}' outside of its folder", name));
    }
  }
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const ManifestTensor& tensor : contents.tensors) {
    if (!names.emplace(tensor.part, tensor.name).second) {
      throw CheckpointError(fmt::format("it has two {}s", name_of(tensor)));
    }
  }
}

// Where a slice's bytes stand, which lie in its file.
ByteRange bytes_of(const Contents& contents, const ManifestTensor& tensor,
                   const ManifestSlice& slice) {
  const auto file = contents.files.find(slice.file);
  if (file == contents.files.end()) {
    throw CheckpointError(
        fmt::format("{} stands in a file that it does not list", name_of(tensor)));
  }
  // Both factors are checked: the elements of the whole tensor have so many bytes.
  const uint64_t bytes = bytes_in(tensor, slice);
  if (slice.offset > file->second.size || bytes > file->second.size - slice.offset) {
    throw CheckpointError(
        fmt::format("{} stands beyond the end of '{}'", name_of(tensor), slice.file));
  }
  const uint64_t chunks =
      bytes / contents.chunk_bytes + static_cast<uint64_t>(bytes % contents.chunk_bytes != 0);
  if (slice.checksums.size() != chunks) {
    throw CheckpointError(fmt::format("{} has {} checksums for {} chunks", name_of(tensor),
                                      slice.checksums.size(), chunks));
  }
  return {slice.offset, slice.offset + bytes};
}

// A range that is not empty, of a box that is not larger than its tensor.
void require_slice(const ManifestTensor& tensor, const ManifestSlice& slice) {
  // LibTorch's tensors have no more dimensions.
  constexpr std::size_t kMostDimensions = 64;
  const std::vector<int64_t>& shape = tensor.shape;
  if (slice.box && (shape.size() > kMostDimensions || !lies_in(*slice.box, shape))) {
    throw CheckpointError(fmt::format("a box of {} does not lie in it", name_of(tensor)));
  }
  const int64_t elements = slice.box ? slice.box->elements() : elements_of(tensor);
  if (slice.begin < 0 || slice.end <= slice.begin || slice.end > elements) {
    throw CheckpointError(
        fmt::format("a slice of {} is empty or ends beyond its box", name_of(tensor)));
  }
}

// Slices of boxes come in any order.
void require_boxes(const Contents& contents, const ManifestTensor& tensor, RangesOfFiles& ranges) {
  elements_of(tensor);
  std::vector<BoxRange> parts;
  for (const ManifestSlice& slice : tensor.slices) {
    require_slice(tensor, slice);
    parts.push_back(slice.part().in(tensor.shape));
    ranges[slice.file].push_back(bytes_of(contents, tensor, slice));
  }
  const std::string fault = fault_of_cover(tensor.shape, parts);
  if (fault.empty()) return;
  throw CheckpointError(fmt::format("the slices of {} {}", name_of(tensor), fault));
}

void require_tensor(const Contents& contents, const ManifestTensor& tensor, RangesOfFiles& ranges) {
  if (tensor.has_boxes()) return require_boxes(contents, tensor, ranges);
  const int64_t elements = elements_of(tensor);
  int64_t covered = 0;
  for (const ManifestSlice& slice : tensor.slices) {
    if (slice.begin != covered || slice.end <= slice.begin || slice.end > elements) {
      throw CheckpointError(
          fmt::format("the slices of {} leave a gap, overlap or end beyond it", name_of(tensor)));
    }
    covered = slice.end;
    const ByteRange range = bytes_of(contents, tensor, slice);
    ranges[slice.file].push_back(range);
  }
  if (covered != elements) {
    throw CheckpointError(fmt::format("the slices of {} hold {} of its {} elements",
                                      name_of(tensor), covered, elements));
  }
}

void require_file(const std::string& name, const ManifestFile& file,
                  std::vector<ByteRange> ranges) {
  if (file.head_bytes > kLargestHead) {
    throw CheckpointError(fmt::format("the head of '{}' has {} bytes, more than the {} that it may",
                                      name, file.head_bytes, kLargestHead));
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t covered = file.head_bytes;
  for (const ByteRange& range : ranges) {
    if (range.begin != covered) {
      throw CheckpointError(fmt::format("the slices in '{}' leave a gap or overlap at byte {}",
                                        name, std::min(range.begin, covered)));
    }
    covered = range.end;
  }
  if (covered != file.size) {
    throw CheckpointError(fmt::format("head and slices of '{}' have {} bytes, the file {}", name,
                                      covered, file.size));
  }
}

void require_attachment(const std::string& name, const ManifestFile& file) {
  if (!is_plain_file_name(name)) {
    throw CheckpointError(fmt::format("its attachment '{}' does not lie in its folder", name));
  }
  if (file.size > kLargestAttachment) {
    throw CheckpointError(
        fmt::format("its attachment '{}' has {} bytes, more than the {} that it "
                    "may",
                    name, file.size, kLargestAttachment));
  }
}

}  // namespace

int64_t elements_of(const ManifestTensor& tensor) {
  constexpr int64_t kMaxBytes = std::numeric_limits<int64_t>::max() / 2;
  // A 0 among the dimensions makes none of it large, but what stands beside it must be sane too.
  int64_t most = kMaxBytes / static_cast<int64_t>(c10::elementSize(tensor.dtype));
  int64_t elements = 1;
  for (const int64_t size : tensor.shape) {
    if (size < 0 || (size > 0 && size > most)) {
      throw CheckpointError(fmt::format("the shape of {} is impossible", name_of(tensor)));
    }
    if (size > 0) most /= size;
    elements *= size;
  }
  return elements;
}

uint64_t bytes_in(const ManifestTensor& tensor, const ManifestSlice& slice) {
  return static_cast<uint64_t>(slice.end - slice.begin) * c10::elementSize(tensor.dtype);
}

bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

void require_sound(const Manifest& manifest) {
  if (manifest.world_size < 1) throw CheckpointError("its world_size is no number of ranks");
  if (manifest.global_batch_size < 1 || manifest.global_batch_size > kMaxSamplesAStep) {
    throw CheckpointError(
        fmt::format("its global_batch_size, {}, is no number of samples from 1 to "
                    "{}",
                    manifest.global_batch_size, kMaxSamplesAStep));
  }
  if (manifest.chunk_bytes < Contents::kMinChunkBytes || manifest.chunk_bytes > kLargestChunk ||
      !std::has_single_bit(manifest.chunk_bytes)) {
    throw CheckpointError(fmt::format("its chunk_bytes, {}, is no power of two from {} to {}",
                                      manifest.chunk_bytes, Contents::kMinChunkBytes,
                                      kLargestChunk));
  }
  require_names(manifest);
  RangesOfFiles ranges;
  for (const ManifestTensor& tensor : manifest.tensors) require_tensor(manifest, tensor, ranges);
  for (const auto& [name, file] : manifest.files) {
    const auto found = ranges.find(name);
    require_file(name, file, found == ranges.end() ? std::vector<ByteRange>() : found->second);
  }
  for (const auto& [name, file] : manifest.attachments) require_attachment(name, file);
}

}  // namespace phalanx
