// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/header_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/checkpoint/format/safetensors.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using SlicePointer = std::pair<const ManifestTensor*, const ManifestSlice*>;

/// An entry that is a range of the elements of a tensor, or of a box of it: it is named
/// `tensor[begin:end]`, with the stored name of the tensor or box.
struct RangeEntry {
  std::string_view tensor;
  int64_t begin = 0;
  int64_t end = 0;
  const SafetensorsEntry* entry = nullptr;
};

std::optional<RangeEntry> range_of(const SafetensorsEntry& entry) {
  const std::string_view name = entry.name;
  const std::size_t bracket = name.rfind('[');
  if (bracket == std::string_view::npos || entry.shape.size() != 1) return std::nullopt;
  RangeEntry range{.tensor = name.substr(0, bracket), .entry = &entry};
  const char* const last = name.data() + name.size();
  const auto [colon, no_begin] = std::from_chars(name.data() + bracket + 1, last, range.begin);
  if (no_begin != std::errc() || colon == last || *colon != ':') return std::nullopt;
  const auto [close, no_end] = std::from_chars(colon + 1, last, range.end);
  if (no_end != std::errc() || std::string_view(close, last) != "]") return std::nullopt;
  if (range.begin < 0 || range.end < 0 || range.end - range.begin != entry.shape[0])
    return std::nullopt;
  return range;
}

/// Where a file's header says that tensors are.
class Header {
 public:
  explicit Header(const fs::path& path) : file_(path) {
    for (const SafetensorsEntry& entry : file_.header().entries) {
      if (const auto range = range_of(entry)) ranges_.emplace(range->tensor, *range);
    }
  }

  bool agrees(const ManifestTensor& tensor, const ManifestSlice& slice) const {
    const std::string name = stored_name(tensor.name, slice.box);
    if (const SafetensorsEntry* whole = file_.find(name)) {
      const auto& shape = slice.box ? slice.box->sizes : tensor.shape;
      return whole->shape == shape && stands_at(tensor, slice, *whole, 0);
    }
    const auto [first, last] = ranges_.equal_range(name);
    return std::any_of(first, last, [&](const auto& item) {
      const RangeEntry& range = item.second;
      return range.begin <= slice.begin && slice.end <= range.end &&
             stands_at(tensor, slice, *range.entry, range.begin);
    });
  }

 private:
  /// In an entry that begins with element `first`.
  bool stands_at(const ManifestTensor& tensor, const ManifestSlice& slice,
                 const SafetensorsEntry& entry, int64_t first) const {
    const auto before = static_cast<uint64_t>(slice.begin - first) * c10::elementSize(tensor.dtype);
    return entry.dtype == tensor.dtype && slice.offset == file_.data_start() + entry.begin + before;
  }

  SafetensorsFile file_;
  std::multimap<std::string_view, RangeEntry> ranges_;
};

/// Readers of Hugging Face's format go by the index.
void require_index_agrees(const Checkpoint& checkpoint) {
  const fs::path path = checkpoint.path / kSafetensorsIndex;
  if (!checkpoint.manifest.files.contains(kSafetensorsIndex)) return;
  const auto index = read_safetensors_index(path);
  std::size_t listed = 0;
  for (const ManifestTensor& tensor : checkpoint.manifest.tensors) {
    if (tensor.part != kModelPart) continue;
    const auto found = index.find(tensor.name);
    const bool stands_there =
        found != index.end() && checkpoint.manifest.files.contains(found->second) &&
        std::all_of(tensor.slices.begin(), tensor.slices.end(),
                    [&](const auto& slice) { return slice.file == found->second; });
    if (!stands_there) {
      throw CheckpointError(fmt::format("'{}' and the manifest disagree on model tensor '{}'",
                                        path.string(), tensor.name));
    }
    ++listed;
  }
  if (listed == index.size()) return;
  throw CheckpointError(
      fmt::format("'{}' names tensors that the manifest does not", path.string()));
}

}  // namespace

void require_headers_agree(const Checkpoint& checkpoint) {
  require_index_agrees(checkpoint);
  std::map<std::string_view, std::vector<SlicePointer>> slices_of;
  for (const ManifestTensor& tensor : checkpoint.manifest.tensors) {
    for (const ManifestSlice& slice : tensor.slices) {
      slices_of[slice.file].emplace_back(&tensor, &slice);
    }
  }
  for (const auto& [name, file] : checkpoint.manifest.files) {
    if (!name.ends_with(".safetensors")) continue;
    const fs::path path = checkpoint.path / name;
    const Header header(path);
    for (const auto& [tensor, slice] : slices_of[name]) {
      if (header.agrees(*tensor, *slice)) continue;
      throw CheckpointError(fmt::format("'{}' and its manifest disagree on {} tensor '{}'",
                                        path.string(), tensor->part, tensor->name));
    }
  }
}

}  // namespace phalanx
