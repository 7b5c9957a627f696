// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/average.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/safetensors_header.h"
#include "trainer/checkpoint/load/mismatch.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

using TensorsByName = std::map<std::string_view, const ManifestTensor*>;

TensorsByName model_of(const Contents& contents) {
  TensorsByName tensors;
  for (const ManifestTensor& tensor : contents.tensors) {
    if (tensor.part == kModelPart) tensors[tensor.name] = &tensor;
  }
  return tensors;
}

void require_one_base(const Checkpoint& first, const Checkpoint& other) {
  const std::string& base = first.manifest.base;
  if (base == other.manifest.base) return;
  if (base.empty() || other.manifest.base.empty()) {
    const Checkpoint& model = base.empty() ? first : other;
    const Checkpoint& adapters = base.empty() ? other : first;
    throw UserError(
        fmt::format("'{}' holds a whole model, and '{}' adapters: average checkpoints of one kind",
                    model.path.string(), adapters.path.string()));
  }
  throw UserError(
      fmt::format("'{}' and '{}' hold adapters that were trained beside different models: average "
                  "adapters of one model",
                  first.path.string(), other.path.string()));
}

// A view that holds nothing of a tensor: to be compared. If both are floating point tensors, it has
// the other's precision, which may be another one.
ShardedTensorView compared(const ManifestTensor& tensor, const TensorsByName& others) {
  const auto other = others.find(tensor.name);
  const bool is_precision_free = other != others.end() && other->second->shape == tensor.shape &&
                                 c10::isFloatingType(other->second->dtype) &&
                                 c10::isFloatingType(tensor.dtype);
  const at::ScalarType dtype = is_precision_free ? other->second->dtype : tensor.dtype;
  return {.name = tensor.name,
          .shape = tensor.shape,
          .dtype = dtype,
          .begin = 0,
          .end = 0,
          .local = tensors::empty({0}, dtype)};
}

void require_same_tensors(const Checkpoint& first, const Checkpoint& other) {
  const TensorsByName there = model_of(other.manifest);
  std::vector<ShardedTensorView> here;
  for (const ManifestTensor& tensor : first.manifest.tensors) {
    if (tensor.part == kModelPart) here.push_back(compared(tensor, there));
  }
  const auto lines = find_mismatches(other.manifest, kModelPart, here).lines();
  if (lines.empty()) return;
  throw UserError(
      fmt::format("the checkpoint '{}' holds another model than '{}', which is meant by 'here':\n  "
                  "{}\naverage checkpoints of one model",
                  other.path.string(), first.path.string(), fmt::join(lines, "\n  ")));
}

}  // namespace

ModelAverage::Other::Other(const Checkpoint& checkpoint)
    : checkpoint(checkpoint),
      by_name(model_of(checkpoint.manifest)),
      reader(checkpoint.path, checkpoint.manifest) {}

at::Tensor ModelAverage::Other::read(std::string_view name, int64_t begin, int64_t count) {
  const ManifestTensor& tensor = *by_name.at(name);
  at::Tensor values = tensors::empty({count}, tensor.dtype);
  reader.read(tensor, begin, values);
  return values;
}

ModelAverage::ModelAverage(std::span<const Checkpoint> checkpoints) : first_(checkpoints.front()) {
  for (const Checkpoint& other : checkpoints.subspan(1)) {
    require_one_base(first_, other);
    require_same_tensors(first_, other);
    others_.emplace_back(other);
  }
}

std::vector<CopiedTensor> ModelAverage::tensors() {
  std::vector<CopiedTensor> tensors;
  for (const ManifestTensor& tensor : first_.manifest.tensors) {
    if (tensor.part != kModelPart) continue;
    tensors.push_back(
        {.source = &tensor,
         .name = tensor.name,
         .dtype = tensor.dtype,
         .changed = [this, source = &tensor](int64_t begin, const at::Tensor& values) {
           return mean(*source, begin, values);
         }});
  }
  return tensors;
}

at::Tensor ModelAverage::mean(const ManifestTensor& tensor, int64_t begin,
                              const at::Tensor& values) {
  if (!c10::isFloatingType(tensor.dtype)) {
    require_equal(tensor, begin, values);
    return values;
  }
  at::Tensor sum = values.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  for (Other& other : others_) {
    sum.add_(other.read(tensor.name, begin, values.numel()).to(at::kDouble));
  }
  return sum.div_(static_cast<double>(others_.size() + 1));
}

void ModelAverage::require_equal(const ManifestTensor& tensor, int64_t begin,
                                 const at::Tensor& values) {
  for (Other& other : others_) {
    if (values.equal(other.read(tensor.name, begin, values.numel()))) continue;
    throw UserError(
        fmt::format("tensor '{}' differs between '{}' and '{}', and values of the dtype {} have no "
                    "mean: average checkpoints in which it is the same",
                    tensor.name, first_.path.string(), other.checkpoint.path.string(),
                    safetensors_dtype_name(tensor.dtype)));
  }
}

}  // namespace phalanx
