// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "trainer/simulated/collective_log.h"

namespace phalanx {

/// A backend without peers, for host memory: every collective is over when it returns, and does to
/// the tensors what it would if all ranks of the group held this one's values. A sum multiplies by
/// their number, a gathered tensor is this rank's in every place, a part that is scattered or
/// exchanged is this rank's own; a broadcast changes nothing. What is received from a single peer
/// is what this rank has sent last with that tag, or zero. Writes each collective into the log.
c10::intrusive_ptr<c10d::Backend> make_fake_backend(std::string group, GroupPlace place,
                                                    std::shared_ptr<CollectiveLog> log);

}  // namespace phalanx
