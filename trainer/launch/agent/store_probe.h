// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "trainer/ranks/stores/tcp_store.h"

namespace phalanx {

/// Why no store can be met at a place; empty where one answers within `patience`. c10d's client
/// would wait for ever for the first word of another service, so a process of its own asks: for a
/// process of one thread.
std::string why_no_store_answers(const StorePlace& place, std::chrono::milliseconds patience);

}  // namespace phalanx
