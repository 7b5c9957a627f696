// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/known_samples.h"

namespace phalanx {

/// A tensor of a micro-batch by its name, "inputs"; "tensor 0" where the task names none.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Those of a micro-batch that are defined.
std::vector<NamedTensor> named_tensors(const Batch& batch);

/// "float32 [8, 9]".
std::string shape_of(const at::Tensor& tensor);

/// Numbers that an operation has taken for indices, and those that it takes: from `lowest` to below
/// `limit`, and `ignored`.
struct IndexRange {
  std::string operation;
  at::Tensor indices;
  int64_t lowest = 0;
  int64_t limit = 0;
  std::optional<int64_t> ignored;
};

/// A micro-batch as an error describes it; on the host.
class BatchLook {
 public:
  /// Reads the samples again where a device does not give its tensors any more. `samples` lives
  /// longer than this.
  BatchLook(const Batch& batch, const KnownSamples& samples);

  /// One line a tensor, "inputs: float32 [8, 9], from -1.5 to 3", and one with the first sample;
  /// empty: nothing is known of it.
  std::vector<std::string> lines() const;

  /// The samples with values that are not finite, one each; empty: none has. Minus infinity beside
  /// nothing but 0 is a mask.
  std::vector<std::string> nonfinite_samples() const;

  /// The samples with numbers that are among the indices but are none, one each.
  std::vector<std::string> samples_beyond(const IndexRange& range) const;

 private:
  struct BadValue {
    std::optional<int64_t> row;  // None: the tensor's rows are not the samples.
    std::string text;
  };

  std::optional<int64_t> row_of(const at::Tensor& tensor, int64_t place) const;
  std::vector<std::string> words_of(const std::vector<BadValue>& values) const;
  std::string words_of(const BadValue& value) const;
  // The first value of each sample that `is_bad`, of a tensor whose values are Value on the host.
  template <class Value, class IsBad>
  void find(const NamedTensor& named, const IsBad& is_bad, std::vector<BadValue>& found) const;

  std::vector<NamedTensor> tensors_;
  std::vector<int64_t> numbers_;  // The samples' numbers.
  int64_t rows_;
  const KnownSamples& samples_;
};

}  // namespace phalanx
