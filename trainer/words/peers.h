// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/words/word.h"

// One file a trainer, in which its words stand as constants of the program. docs/coming_from.md
// shows them all; a test compares it.
namespace phalanx::words {

extern const Peer kPlainDdp;
extern const Peer kFsdp1;
extern const Peer kFsdp2;
extern const Peer kTorchTnt;
extern const Peer kLightning;
extern const Peer kTransformers;
extern const Peer kTorchTitan;
extern const Peer kTorchTune;
extern const Peer kMl;

}  // namespace phalanx::words
