// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/batch_source.h"

namespace phalanx {

void BatchSource::start_first(int64_t /*samples*/) { start_epoch(0, 0); }

}  // namespace phalanx
