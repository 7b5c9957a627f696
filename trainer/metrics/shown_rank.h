// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// Whether this process shows how far it is with work that every rank does alike, such as opening
/// files. A process that is no rank does. Safe to use from several threads.
bool shows_work_of_every_rank();

/// A run says it as soon as it knows the process's rank: the first rank alone shows such work.
void show_work_of_every_rank(bool shows);

}  // namespace phalanx
