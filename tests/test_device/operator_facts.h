// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <vector>

namespace phalanx::test_device {

/// What an operator's schema says of how it uses its arguments.
struct OperatorFacts {
  std::string name;           ///< With its overload: "aten::add.Tensor".
  bool is_view = false;       ///< Its results share an argument's memory; it reads none.
  bool reads_values = false;  ///< The host waits for values: results that are no tensors, shapes.
  bool takes_host_indices = false;  ///< Its indices may lie in host memory, and are copied then.
  bool is_random = false;
  std::optional<std::size_t> generator;                       ///< The argument that is one.
  std::vector<bool> writes;                                   ///< By argument.
  std::vector<std::optional<std::size_t>> returned_argument;  ///< By result.
};

/// Looked up once for each operator.
const OperatorFacts& facts_of(const c10::OperatorHandle& op);

}  // namespace phalanx::test_device
