// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <span>
#include <string_view>

namespace phalanx {

struct Flag;
struct Invocation;

/// A precision in which a command can write a model.
struct WrittenDtype {
  std::string_view name;  ///< As --dtype takes it: "bf16".
  at::ScalarType dtype;
};

/// All of them.
std::span<const WrittenDtype> written_dtypes();

/// The flag --dtype, which picks one of them.
Flag dtype_flag();

/// What a tensor is written as: in the precision that `--dtype` asks for, if it is a real one.
at::ScalarType asked_dtype(const Invocation& invocation, at::ScalarType present);

}  // namespace phalanx
