// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/slice_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include "trainer/checkpoint/box_values.h"
#include "trainer/checkpoint/format/checked_file.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/checksum.h"
#include "trainer/checkpoint/format/manifest_rules.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

/// Bytes that are read at a time: large enough for a disk, small enough for the cache.
constexpr uint64_t kPiece = uint64_t{4} << 20;

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

// A bool that is neither 0 nor 1 would be undefined behaviour wherever it is used.
void make_valid(std::span<std::byte> bools) {
  for (std::byte& value : bools) value = std::byte{value != std::byte{0}};
}

}  // namespace

const File& SliceReader::file(const std::string& name) {
  const auto found = files_.find(name);
  if (found != files_.end()) return found->second;
  return files_
      .emplace(name, open_checked(path_of(folder_, contents_, name), contents_.files.at(name)))
      .first->second;
}

void SliceReader::read(const ManifestTensor& tensor, int64_t begin, const at::Tensor& destination) {
  read(tensor, {.box = std::nullopt, .begin = begin, .end = begin + destination.numel()},
       destination);
}

void SliceReader::read(const ManifestTensor& tensor, const TensorPart& part,
                       const at::Tensor& destination) {
  if (destination.scalar_type() != tensor.dtype || destination.numel() != part.end - part.begin) {
    throw std::logic_error(
        fmt::format("tensor '{}' does not fit its destination's dtype and size", tensor.name));
  }
  const bool is_direct = destination.is_cpu() && destination.is_contiguous();
  const at::Tensor host =
      is_direct ? destination : tensors::empty(destination.sizes(), destination.scalar_type());
  if (part.box || tensor.has_boxes()) {
    read_boxes(tensor, part.in(tensor.shape), host);
  } else {
    read_range(tensor, part.begin, host);
  }
  if (tensor.dtype == at::kBool) make_valid(bytes_of(host));
  if (!is_direct) destination.copy_(host);
}

// Bytes go from the files straight to their places.
void SliceReader::read_range(const ManifestTensor& tensor, int64_t begin, const at::Tensor& host) {
  const int64_t end = begin + host.numel();
  const uint64_t size = host.element_size();
  int64_t place = begin;
  for (const ManifestSlice& slice : tensor.slices) {
    if (slice.end <= place || slice.begin >= end) continue;
    const int64_t stop = std::min(end, slice.end);
    read_slice(tensor, slice, static_cast<uint64_t>(place - slice.begin) * size,
               bytes_of(host).subspan(static_cast<uint64_t>(place - begin) * size,
                                      static_cast<uint64_t>(stop - place) * size));
    place = stop;
  }
  if (place != end) {
    throw std::logic_error(fmt::format("tensor '{}' has no element {}", tensor.name, place));
  }
}

// What slices and the wanted part share, a window of a slice at a time, which begins with a chunk.
void SliceReader::read_boxes(const ManifestTensor& tensor, const BoxRange& wanted,
                             const at::Tensor& host) {
  const auto window =
      static_cast<int64_t>(std::max(kPiece, contents_.chunk_bytes) / host.element_size());
  int64_t filled = 0;
  for (const ManifestSlice& slice : tensor.slices) {
    BoxRange stored = slice.part().in(tensor.shape);
    for (int64_t begin = slice.begin; begin < slice.end; begin += window) {
      stored.begin = begin;
      stored.end = std::min(begin + window, slice.end);
      filled += read_shared(tensor, slice, stored, wanted, host);
    }
  }
  if (filled != host.numel()) {
    throw std::logic_error(fmt::format("tensor '{}' has {} of the {} elements of a part",
                                       tensor.name, filled, host.numel()));
  }
}

// The elements that they share. Progress counts these, whatever is read around them.
int64_t SliceReader::read_shared(const ManifestTensor& tensor, const ManifestSlice& slice,
                                 const BoxRange& stored, const BoxRange& wanted,
                                 const at::Tensor& host) {
  const std::vector<TensorBox> boxes = shared_boxes(stored, wanted);
  if (boxes.empty()) return 0;
  BoxRange read{.box = stored.box, .begin = stored.end, .end = stored.begin};
  int64_t elements = 0;
  for (const TensorBox& box : boxes) {
    TensorBox last = box;
    for (std::size_t i = 0; i < last.sizes.size(); ++i) last.offsets[i] += last.sizes[i] - 1;
    read.begin = std::min(read.begin, place_in(stored.box, box));
    read.end = std::max(read.end, place_in(stored.box, last) + 1);
    elements += box.elements();
  }
  const at::Tensor values = tensors::empty({read.end - read.begin}, tensor.dtype);
  const auto size = static_cast<uint64_t>(values.element_size());
  ByteProgress* const progress = std::exchange(progress_, nullptr);
  read_slice(tensor, slice, static_cast<uint64_t>(read.begin - slice.begin) * size,
             bytes_of(values));
  progress_ = progress;
  if (progress_ != nullptr) progress_->done += static_cast<uint64_t>(elements) * size;
  if (tensor.dtype == at::kBool) make_valid(bytes_of(values));
  for (const TensorBox& box : boxes) {
    box_of(host, wanted, box).copy_(box_of(values, read, box));
  }
  return elements;
}

void SliceReader::verify(const ManifestTensor& tensor, const ManifestSlice& slice) {
  const uint64_t bytes = bytes_in(tensor, slice);
  const uint64_t step = std::max(kPiece, contents_.chunk_bytes);
  for (uint64_t begin = 0; begin < bytes; begin += step) {
    buffer_.resize(std::min(step, bytes - begin));
    read_chunks(tensor, slice, begin / contents_.chunk_bytes, buffer_);
  }
}

void SliceReader::read_bytes(const ManifestSlice& slice, uint64_t offset,
                             std::span<std::byte> destination) {
  const File& opened = file(slice.file);
  try {
    opened.read(destination, offset);
  } catch (const IoError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw CheckpointError(error.what());  // it ended early, though its size had been right
  }
  bytes_read_ += destination.size();
  if (progress_ != nullptr) progress_->done += destination.size();
}

// Whole chunks go where they belong; of those that are cut, only the part that is wanted.
void SliceReader::read_slice(const ManifestTensor& tensor, const ManifestSlice& slice,
                             uint64_t begin, std::span<std::byte> destination) {
  const uint64_t chunk = contents_.chunk_bytes;
  if (chunk == 0) {
    return read_bytes(slice, slice.offset + begin, destination);
  }
  const uint64_t bytes = bytes_in(tensor, slice);
  while (!destination.empty()) {
    const uint64_t first = begin / chunk;
    const uint64_t end = begin + destination.size();
    const bool starts_whole = begin % chunk == 0;
    const bool ends_slice = end == bytes;
    const uint64_t whole = ends_slice ? destination.size() : destination.size() / chunk * chunk;
    uint64_t taken = 0;
    if (starts_whole && whole > 0) {
      taken = std::min(whole, std::max(kPiece, chunk));
      read_chunks(tensor, slice, first, destination.first(taken));
    } else {
      buffer_.resize(std::min(chunk, bytes - first * chunk));
      read_chunks(tensor, slice, first, buffer_);
      const uint64_t skipped = begin - first * chunk;
      taken = std::min<uint64_t>(destination.size(), buffer_.size() - skipped);
      std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(skipped), taken,
                  destination.begin());
    }
    begin += taken;
    destination = destination.subspan(taken);
  }
}

void SliceReader::read_chunks(const ManifestTensor& tensor, const ManifestSlice& slice,
                              uint64_t first, std::span<std::byte> destination) {
  const uint64_t chunk = contents_.chunk_bytes;
  const uint64_t offset = slice.offset + first * chunk;
  read_bytes(slice, offset, destination);
  const std::vector<uint64_t> sums = checksums_of(destination, chunk);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] == slice.checksums[first + i]) continue;
    const uint64_t begin = offset + i * chunk;
    throw CheckpointError(fmt::format(
        "'{}' is damaged: the checksum of its bytes {} to {}, which are {} tensor '{}', is wrong",
        (folder_ / slice.file).string(), begin,
        std::min(begin + chunk, slice.offset + bytes_in(tensor, slice)), tensor.part, tensor.name));
  }
}

}  // namespace phalanx
