// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/parallel/batch_norm/module_batch_norm.h"
#include "trainer/parallel/ddp/backward_passes.h"
#include "trainer/parallel/ddp/comm_hook.h"
#include "trainer/parallel/ddp/ddp.h"
#include "trainer/parallel/ddp/ordered_reducer.h"
#include "trainer/parallel/ddp/outputs_node.h"
#include "trainer/parallel/ddp/uneven_passes.h"

namespace phalanx {

/// What a DistributedDataParallel is made of.
struct DistributedDataParallel::Impl {
  Ranks ranks;
  DdpOptions options;
  std::vector<at::Tensor> buffers;                              ///< Those that are broadcast.
  std::optional<batch_norm::ModuleBatchNorm> batch_statistics;  ///< With sync_batchnorm.
  std::vector<at::Tensor> states;  ///< Parameters, and the buffers that are broadcast.
  std::vector<std::string> names;  ///< The names of the reducer's parameters.
  c10::intrusive_ptr<SharedReducer> shared = c10::make_intrusive<SharedReducer>();
  std::shared_ptr<CommHook> hook;
  std::shared_ptr<BackwardPasses> passes;
  std::optional<UnevenPasses> uneven;  ///< In `join`.
  bool synchronize = true;
  bool buffers_may_differ = true;  ///< Since the last backward that reduced.

  OrderedReducer& reducer() const { return *shared->reducer; }
  std::optional<Ranks> statistics_ranks() const {
    return batch_statistics ? batch_statistics->ranks() : std::nullopt;
  }
  /// Whether ranks may have other parameters.
  bool differs() const { return hook && hook->group(); }
  bool joins_outputs() const {
    return options.static_graph ? !shared->delay_enqueued : options.find_unused_parameters;
  }
};

}  // namespace phalanx
