// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/same_data.h"

#include "trainer/io/files_of_data.h"
#include "trainer/ranks/collectives/agreement.h"

namespace phalanx {

void require_same_data(const Ranks& ranks, const std::string& fingerprint) {
  if (!ranks.is_single_rank()) require_agreement(ranks, {{"the data", fingerprint, files_of_data}});
}

}  // namespace phalanx
