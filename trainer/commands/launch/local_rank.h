// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// Takes the `--local-rank=N` that torch.distributed.launch puts in front of a program's own
/// arguments (torch/distributed/launch.py, without --use-env) for LOCAL_RANK. Throws UserError
/// where that has another value.
void take_local_rank(std::vector<std::string>& arguments);

}  // namespace phalanx
