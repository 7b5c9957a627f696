// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/planned_manifest.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "trainer/checkpoint/format/checksum.h"

namespace phalanx {
namespace {

/// Gives out each rank's checksums in turn.
class Checksums {
 public:
  explicit Checksums(std::span<const std::string> of_ranks)
      : of_ranks_(of_ranks), taken_(of_ranks.size()) {}

  std::vector<uint64_t> take(int64_t rank, uint64_t count) {
    const auto r = static_cast<std::size_t>(rank);
    std::vector<uint64_t> taken(count);
    const std::size_t bytes = count * sizeof(uint64_t);
    std::memcpy(taken.data(), of_ranks_[r].substr(taken_[r], bytes).data(), bytes);
    taken_[r] += bytes;
    return taken;
  }

 private:
  std::span<const std::string> of_ranks_;
  std::vector<std::size_t> taken_;  ///< Bytes of each.
};

ManifestSlice slice_of(const WritePlan& plan, const PlannedPiece& piece, Checksums& checksums) {
  const HeldTensor& tensor = tensor_of(plan, piece);
  const uint64_t bytes =
      static_cast<uint64_t>(piece.end - piece.begin) * c10::elementSize(tensor.dtype);
  const uint64_t chunks = (bytes + plan.chunk_bytes - 1) / plan.chunk_bytes;
  ManifestSlice slice{.begin = piece.begin,
                      .end = piece.end,
                      .file = plan.files[static_cast<std::size_t>(piece.file)].name,
                      .offset = piece.offset,
                      .checksums = checksums.take(piece.writer, chunks)};
  if (!piece.is_put_together) slice.box = tensor.slices[static_cast<std::size_t>(piece.slice)].box;
  return slice;
}

}  // namespace

void list_planned(const WritePlan& plan, std::span<const std::string> checksums,
                  Contents& contents) {
  contents.chunk_bytes = plan.chunk_bytes;
  for (const PlannedFile& file : plan.files) {
    contents.files[file.name] = {
        .size = file.size, .head_bytes = file.head.size(), .head_checksum = checksum_of(file.head)};
  }
  std::vector<std::size_t> first_of_part;
  for (const PlannedPart& part : plan.parts) {
    first_of_part.push_back(contents.tensors.size());
    for (const HeldTensor& tensor : part.tensors) {
      contents.tensors.push_back({.part = part.name,
                                  .name = tensor.name,
                                  .dtype = tensor.dtype,
                                  .shape = tensor.shape,
                                  .slices = {}});
    }
  }
  Checksums all(checksums);
  for (const PlannedPiece& piece : plan.pieces) {
    if (!piece.is_last_share) continue;
    const std::size_t tensor = first_of_part[static_cast<std::size_t>(piece.part)] +
                               static_cast<std::size_t>(piece.tensor);
    contents.tensors[tensor].slices.push_back(slice_of(plan, piece, all));
  }
}

std::string index_of(const WritePlan& plan, std::string_view part_name) {
  uint64_t bytes = 0;
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  for (const PlannedFile& file : plan.files) {
    const PlannedPart& part = plan.parts[static_cast<std::size_t>(file.part)];
    if (part.name != part_name) continue;
    bytes += file.size - file.head.size();
    for (const int64_t tensor : file.tensors) {
      files[part.tensors[static_cast<std::size_t>(tensor)].name] = file.name;
    }
  }
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", bytes}}},
                                        {"weight_map", std::move(files)}};
  return index.dump(2) + '\n';
}

}  // namespace phalanx
