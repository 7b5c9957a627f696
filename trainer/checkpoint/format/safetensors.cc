// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <stdexcept>

#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/io/lfs_pointer.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kLargestHeader = 100'000'000;
std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

bool comes_before(const ShardedTensorView& left, const ShardedTensorView& right) {
  return safetensors_before(left.dtype, left.name, right.dtype, right.name);
}

std::vector<const ShardedTensorView*> in_file_order(std::span<const ShardedTensorView> views) {
  std::vector<const ShardedTensorView*> order;
  for (const ShardedTensorView& view : views) order.push_back(&view);
  std::sort(order.begin(), order.end(),
            [](const auto* left, const auto* right) { return comes_before(*left, *right); });
  return order;
}

SafetensorsHeader header_for(std::span<const ShardedTensorView* const> views) {
  SafetensorsHeader header{.entries = {}, .metadata = {{"format", "pt"}}};
  uint64_t position = 0;
  for (const ShardedTensorView* view : views) {
    const uint64_t begin = position;
    position +=
        static_cast<uint64_t>(c10::multiply_integers(view->shape)) * c10::elementSize(view->dtype);
    header.entries.push_back({.name = view->name,
                              .dtype = view->dtype,
                              .shape = view->shape,
                              .begin = begin,
                              .end = position});
  }
  return header;
}

uint64_t read_header_length(const File& file) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw IoError("examine", file.path(), errno);
  if (!S_ISREG(status.st_mode)) throw CheckpointError("it is not a regular file");
  const uint64_t size = file.size();
  if (size < kLengthBytes) {
    throw CheckpointError(fmt::format("it has {} bytes, fewer than its length field", size));
  }
  uint64_t length = 0;
  file.read(std::as_writable_bytes(std::span(&length, 1)), 0);
  if (length > kLargestHeader) {
    throw CheckpointError(
        fmt::format("its header claims {} bytes; at most {} are allowed", length, kLargestHeader));
  }
  if (length > size - kLengthBytes) {
    throw CheckpointError(
        fmt::format("its header claims {} bytes, but the file has {} in all", length, size));
  }
  return length;
}

}  // namespace

void require_sound(const ShardedTensorView& view) {
  if (view.box && !lies_in(*view.box, view.shape)) {
    throw std::logic_error(
        fmt::format("a view's box of tensor '{}' does not lie in its shape", view.name));
  }
  const int64_t elements = view.box ? view.box->elements() : c10::multiply_integers(view.shape);
  const bool is_sound = view.begin >= 0 && view.begin <= view.end && view.end <= elements &&
                        view.local.numel() == view.end - view.begin;
  if (is_sound) return;
  throw std::logic_error(fmt::format("a view of tensor '{}' holds {} elements for [{}, {}) of {}",
                                     view.name, view.local.numel(), view.begin, view.end,
                                     elements));
}

void require_whole(const ShardedTensorView& view) {
  const int64_t elements = c10::multiply_integers(view.shape);
  if (view.box || view.begin != 0 || view.end != elements || view.local.numel() != elements) {
    throw std::logic_error(
        fmt::format("tensor '{}': a checkpoint of one rank takes whole tensors, this view "
                    "holds elements [{}, {}) of {}",
                    view.name, view.begin, view.end, elements));
  }
  if (view.local.scalar_type() != view.dtype) {
    throw std::logic_error(
        fmt::format("tensor '{}': its local data is not of the view's dtype", view.name));
  }
}

void write_safetensors(const fs::path& path, std::span<const ShardedTensorView> views) {
  const std::vector<const ShardedTensorView*> order = in_file_order(views);
  for (const ShardedTensorView* view : order) require_whole(*view);
  const std::string head = safetensors_head(header_for(order));
  File file(path, O_WRONLY | O_CREAT | O_EXCL);
  file.write(head);
  for (const ShardedTensorView* view : order) file.write(bytes_of(view->local.cpu().contiguous()));
  file.sync();
}

SafetensorsFile::SafetensorsFile(const fs::path& path)
    : file_(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK) {
  refuse_lfs_pointer(file_);
  try {
    const uint64_t length = read_header_length(file_);
    std::string text(length, '\0');
    file_.read(std::as_writable_bytes(std::span(text)), kLengthBytes);
    data_start_ = kLengthBytes + length;
    header_ = parse_safetensors_header(text, file_.size() - data_start_);
  } catch (const CheckpointError& error) {
    throw CheckpointError(
        fmt::format("'{}' is not a sound safetensors file: {}", path.string(), error.what()));
  }
  for (const SafetensorsEntry& entry : header_.entries) by_name_[entry.name] = &entry;
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

void SafetensorsFile::read_into(const SafetensorsEntry& entry,
                                const at::Tensor& destination) const {
  if (destination.nbytes() != entry.end - entry.begin) {
    throw std::logic_error(
        fmt::format("tensor '{}' has another size than its destination", entry.name));
  }
  read_range_into(entry, 0, destination);
}

void SafetensorsFile::read_range_into(const SafetensorsEntry& entry, int64_t first,
                                      const at::Tensor& destination) const {
  const uint64_t skipped = static_cast<uint64_t>(first) * destination.element_size();
  if (destination.scalar_type() != entry.dtype || !destination.is_contiguous() || first < 0 ||
      skipped + destination.nbytes() > entry.end - entry.begin) {
    throw std::logic_error(
        fmt::format("tensor '{}' does not fit its destination's dtype and size", entry.name));
  }
  const bool on_cpu = destination.is_cpu();
  const at::Tensor host =
      on_cpu ? destination : tensors::empty(destination.sizes(), destination.scalar_type());
  file_.read(bytes_of(host), data_start_ + entry.begin + skipped);
  if (entry.dtype == at::kBool) {
    // A bool that is neither 0 nor 1 would be undefined behaviour wherever it is used.
    for (std::byte& value : bytes_of(host)) value = std::byte{value != std::byte{0}};
  }
  if (!on_cpu) destination.copy_(host);
}

std::map<std::string, at::Tensor> read_safetensors(const fs::path& path) {
  const SafetensorsFile file(path);
  std::map<std::string, at::Tensor> tensors;
  for (const SafetensorsEntry& entry : file.header().entries) {
    at::Tensor tensor = tensors::empty(entry.shape, entry.dtype);
    file.read_into(entry, tensor);
    tensors.emplace(entry.name, std::move(tensor));
  }
  return tensors;
}

}  // namespace phalanx
