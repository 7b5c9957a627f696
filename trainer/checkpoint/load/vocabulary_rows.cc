// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/vocabulary_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "trainer/checkpoint/box_values.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

constexpr int64_t kNew = -1;
// Each piece is read with the chunks around it: of more pieces the whole tensor is cheaper.
constexpr size_t kMostPieces = 64;

/// Elements of a view that stand one behind the other in the tensor there.
struct Piece {
  int64_t at = 0;     ///< In the view's own range.
  int64_t there = 0;  ///< In the flattened tensor there.
  int64_t count = 0;
};

std::vector<Piece> pieces_of(const VocabularyRows& rows, const ShardedTensorView& view) {
  const int64_t width = view.shape.front() == 0
                            ? 0
                            : std::accumulate(view.shape.begin() + 1, view.shape.end(), int64_t{1},
                                              std::multiplies<>());
  std::vector<Piece> pieces;
  for (int64_t at = view.begin; at < view.end;) {
    const int64_t row = at / width;
    const int64_t end = std::min((row + 1) * width, view.end);
    const int64_t source = rows.source.at(static_cast<size_t>(row));
    if (source != kNew) {
      const int64_t there = source * width + at % width;
      const int64_t here = at - view.begin;
      Piece* const last = pieces.empty() ? nullptr : &pieces.back();
      if (last != nullptr && last->at + last->count == here && last->there + last->count == there) {
        last->count += end - at;
      } else {
        pieces.push_back({.at = here, .there = there, .count = end - at});
      }
    }
    at = end;
  }
  return pieces;
}

at::Tensor whole_of(SliceReader& reader, const ManifestTensor& tensor) {
  const at::Tensor whole = tensors::empty(tensor.shape, tensor.dtype);
  reader.read(tensor, 0, whole);
  return whole;
}

// Row by row, out of the whole tensor there: what a box has of a row is small.
void read_rows_of_box(SliceReader& reader, const ManifestTensor& tensor, const VocabularyRows& rows,
                      const ShardedTensorView& view) {
  const at::Tensor whole = whole_of(reader, tensor);
  const at::Tensor local = view.local.contiguous();
  const BoxRange held = view.part().in(view.shape);
  for (const TensorBox& box : boxes_of(held)) {
    const at::Tensor here = box_of(local, held, box);
    TensorBox there = box;
    there.sizes.front() = 1;
    for (int64_t i = 0; i < box.sizes.front(); ++i) {
      const int64_t source = rows.source.at(static_cast<size_t>(box.offsets.front() + i));
      if (source == kNew) continue;
      there.offsets.front() = source;
      here.narrow(0, i, 1).copy_(
          box_of(whole, {.box = whole_box(tensor.shape), .begin = 0, .end = whole.numel()}, there));
    }
  }
  if (!local.is_same(view.local)) view.local.copy_(local);
}

}  // namespace

std::string VocabularyRows::text() const {
  const std::set<int64_t> used(source.begin(), source.end());
  const auto fresh = std::ranges::count(source, kNew);
  return fmt::format("rows of the vocabulary: {} taken, {} new and initialised, {} left there",
                     std::ssize(source) - fresh, fresh,
                     there - std::ssize(used) + (fresh > 0 ? 1 : 0));
}

std::vector<int64_t> rows_by_id(int64_t here, int64_t there) {
  std::vector<int64_t> source(static_cast<size_t>(here), kNew);
  std::iota(source.begin(), source.begin() + std::min(here, there), int64_t{0});
  return source;
}

Contents with_rows(const Contents& contents, const std::set<std::string>& tensors, int64_t here) {
  Contents changed = contents;
  for (ManifestTensor& tensor : changed.tensors) {
    const bool is_one = tensor.part == kModelPart && tensors.contains(tensor.name);
    if (is_one && !tensor.shape.empty()) tensor.shape.front() = here;
  }
  return changed;
}

void read_rows(SliceReader& reader, const ManifestTensor& tensor, const VocabularyRows& rows,
               const ShardedTensorView& view) {
  if (view.box) return read_rows_of_box(reader, tensor, rows, view);
  if (!view.local.is_contiguous()) {
    ShardedTensorView copy = view;
    copy.local = view.local.contiguous();
    read_rows(reader, tensor, rows, copy);
    view.local.copy_(copy.local);
    return;
  }
  const std::vector<Piece> pieces = pieces_of(rows, view);
  const at::Tensor local = view.local.view(-1);
  at::Tensor whole;
  if (pieces.size() > kMostPieces) {
    whole = whole_of(reader, tensor).view(-1);
  }
  for (const Piece& piece : pieces) {
    at::Tensor there;
    if (whole.defined()) {
      there = whole.narrow(0, piece.there, piece.count);
    } else {
      there = tensors::empty({piece.count}, tensor.dtype);
      reader.read(tensor, piece.there, there);
    }
    local.narrow(0, piece.at, piece.count).copy_(there);
  }
}

}  // namespace phalanx
