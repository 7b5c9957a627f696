// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <span>
#include <string_view>

namespace phalanx {

struct Invocation;

/// A precision in which a command can write a model.
struct WrittenDtype {
  std::string_view name;  ///< As --dtype takes it: "bf16".
  at::ScalarType dtype;
};

/// All of them.
std::span<const WrittenDtype> written_dtypes();

/// What a tensor is written as: in the precision that `--dtype` asks for, if it is a real one.
at::ScalarType asked_dtype(const Invocation& invocation, at::ScalarType present);

}  // namespace phalanx
