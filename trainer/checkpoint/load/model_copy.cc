// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/model_copy.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/checked_file.h"
#include "trainer/checkpoint/format/manifest_rules.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/checkpoint/load/slice_reader.h"
#include "trainer/checkpoint/save/piece_writer.h"
#include "trainer/checkpoint/save/planned_manifest.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

WritePlan plan_of(const std::vector<CopiedTensor>& tensors, const PlanLimits& limits) {
  PlannedPart part{.name = std::string(kModelPart), .layout = Layout::whole, .tensors = {}};
  for (const CopiedTensor& tensor : tensors) {
    HeldTensor held{
        .name = tensor.name, .dtype = tensor.dtype, .shape = tensor.source->shape, .slices = {}};
    if (const int64_t elements = elements_of(*tensor.source); elements > 0) {
      held.slices.push_back({.begin = 0, .end = elements, .holders = {0}});
    }
    part.tensors.push_back(std::move(held));
  }
  const int64_t host = 0;
  return plan_writes({std::move(part)}, std::span(&host, 1), limits);
}

int64_t finite_values(const at::Tensor& values) { return values.isfinite().sum().item<int64_t>(); }

at::Tensor converted(const at::Tensor& values, const CopiedTensor& tensor) {
  if (values.scalar_type() == tensor.dtype) return values;
  at::Tensor result = values.to(tensor.dtype);
  if (finite_values(result) == finite_values(values)) return result;
  throw UserError(fmt::format("tensor '{}' has values beyond the range of {}: choose another dtype",
                              tensor.source->name, c10::toString(tensor.dtype)));
}

}  // namespace

ModelCopy::ModelCopy(std::filesystem::path source, const Contents& contents,
                     std::vector<CopiedTensor> tensors, const PlanLimits& limits)
    : source_(std::move(source)),
      contents_(contents),
      tensors_(std::move(tensors)),
      plan_(plan_of(tensors_, limits)) {}

Contents ModelCopy::write(const std::filesystem::path& folder, ByteProgress* progress) const {
  SliceReader reader(source_, contents_);
  if (progress != nullptr) progress->begin(bytes_written_by(plan_, 0));
  PieceWriter writer(plan_, folder, Ranks(), progress);
  writer.make_files();
  const std::vector<uint64_t> sums = writer.write([&](std::size_t index) {
    const PlannedPiece& piece = plan_.pieces[index];
    const CopiedTensor& tensor = tensors_[static_cast<std::size_t>(piece.tensor)];
    const at::Tensor values = tensors::empty({piece.end - piece.begin}, tensor.source->dtype);
    reader.read(*tensor.source, piece.begin, values);
    return converted(tensor.changed ? tensor.changed(piece.begin, values) : values, tensor);
  });
  Contents written;
  const std::string checksums(reinterpret_cast<const char*>(sums.data()),
                              sums.size() * sizeof(uint64_t));
  list_planned(plan_, std::span(&checksums, 1), written);
  if (plan_.files.size() > 1) {
    written.files[kSafetensorsIndex] =
        write_text(folder / kSafetensorsIndex, index_of(plan_, kModelPart));
  }
  return written;
}

}  // namespace phalanx
