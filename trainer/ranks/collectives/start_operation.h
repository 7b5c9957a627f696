// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/ranks/ranks.h"

namespace c10d {
class ProcessGroup;
class Work;
struct ReduceOp;
}  // namespace c10d

namespace phalanx {

using StartWork = c10::function_ref<c10::intrusive_ptr<c10d::Work>(c10d::ProcessGroup& group)>;

/// What every operation on tensors of Ranks stands on: has `start` begin one of several ranks, and
/// counts it. Errors of beginning it and of waiting for it become a CommunicationError that names
/// the `operation` ("broadcast (of 3 elements from rank 1)"), the ranks and what this one is doing.
/// `start` gives nothing where the operation is over when it returns.
Pending start_operation(const Ranks& ranks, std::string operation, StartWork start);

/// Throws std::logic_error that names the `operation` where the group has been closed, and where
/// this rank is Alone.
void require_open(const Ranks& ranks, std::string_view operation);

/// What moves tensors of this device between several ranks: "gloo", "nccl".
std::string backend_name(const Ranks& ranks, at::DeviceType device);

/// Throws std::invalid_argument for a rank that the group does not have: "broadcast: there is no
/// rank 3 among 2".
void require_rank(const Ranks& ranks, std::string_view operation, int64_t rank);

/// The reduction for c10d, and by its name. Throws std::invalid_argument where values of this dtype
/// have no such reduction; the message begins with the `operation`.
c10d::ReduceOp reduce_op(std::string_view operation, Reduction reduction, at::ScalarType dtype);
const char* to_string(Reduction reduction);

}  // namespace phalanx
