// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/no_fields.h"

#include "trainer/config/tree/schema.h"

namespace phalanx::config {

void NoFields::describe(Schema<NoFields>&) {}

template const Declaration& declaration<NoFields>();
template NoFields read<NoFields>(const Node& resolved_section);
template NoFields read_defaults<NoFields>();

}  // namespace phalanx::config
