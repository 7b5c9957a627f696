// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/api/batch_source.h"
#include "trainer/data/dataset.h"

namespace phalanx {

/// Throws UserError, with the field, the sizes and what to do, where the tensors of a micro-batch
/// of `request` cannot fit into what this rank may take of the host's memory. The first sample
/// tells their size; data that has fewer samples than a micro-batch makes a smaller one.
void require_room_for_batches(const Dataset& dataset, const BatchRequest& request);

}  // namespace phalanx
