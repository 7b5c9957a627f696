// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "trainer/api/batch_source.h"
#include "trainer/config/tree/forward.h"
#include "trainer/data/dataset.h"
#include "trainer/data/sample_order.h"

namespace phalanx {

/// How a data set is read; a task nests it in its own config.
struct LoaderConfig {
  bool shuffle = true;
  std::optional<OrderKind> order;
  int64_t sort_window = 1024;  // Makes a batch of usual size one of one length, and is cheap.
  bool drop_last = false;
  int64_t num_workers = 1;
  int64_t prefetch_batches = 2;
  int64_t max_broken = 0;

  static void describe(config::Schema<LoaderConfig>& s);
};

/// The micro-batches of a data set, epoch by epoch. Background threads keep the next ones ready, in
/// order: how many there are changes nothing but the time. Only training data is shuffled and
/// dropped. Throws UserError when drop_last leaves nothing to train on, and when a micro-batch
/// cannot fit into memory.
std::unique_ptr<BatchSource> load(std::shared_ptr<const Dataset> dataset,
                                  const LoaderConfig& config, const BatchRequest& request,
                                  bool training);

}  // namespace phalanx
