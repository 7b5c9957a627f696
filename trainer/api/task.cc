// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/task.h"

namespace phalanx {

NamedValues AnyTask::metrics(const NamedValues&) const { return {}; }
std::string AnyTask::sample(ModelBase&, const State&) { return {}; }
Attachments AnyTask::attachments() const { return {}; }

}  // namespace phalanx
