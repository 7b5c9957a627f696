// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "trainer/api/batch.h"
#include "trainer/step/batch_look.h"

namespace phalanx {

/// Names of tensors, by where their values begin: a transposed or flattened one has the same name.
class TensorNames {
 public:
  void add(const at::Tensor& tensor, const std::string& name);
  /// Those of a micro-batch that have names.
  void add(const Batch& batch);
  /// Empty for another tensor.
  std::string of(const at::Tensor& tensor) const;
  bool has(const at::Tensor& tensor) const { return !of(tensor).empty(); }
  bool empty() const { return names_.empty(); }

 private:
  std::unordered_map<const void*, std::string> names_;
};

/// An operation of LibTorch as it was called.
struct TracedOperation {
  std::string call;  ///< "linear(inputs float32 [8, 9], head.weight float32 [64, 8])".
  /// The first of the model's own tensors that it computes with or, without one, that of the last
  /// operation before it that did; empty: none did.
  std::string parameter;
  bool has_parameter = false;  ///< The former.
};

/// What is known of a pass once it was called with each of its operations watched.
struct OperationTrace {
  /// What threw, as the pass called it: operations that it is made of are not told.
  std::optional<TracedOperation> failed;
  std::optional<IndexRange> range;  ///< The indices that it takes, where that may be why.
  /// The first whose result is NaN or infinite; minus infinity is a mask.
  std::optional<TracedOperation> nonfinite;
  /// The last of the inputs that an operation was called with; undefined: none was.
  at::Tensor last_input;
};

/// Calls a pass on this thread, slowly, and swallows what it throws. `parameters` are the model's
/// tensors, `inputs` the micro-batch's.
OperationTrace trace_operations(const std::function<void()>& pass, const TensorNames& parameters,
                                const TensorNames& inputs);

}  // namespace phalanx
