// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "trainer/data/dataset.h"

namespace phalanx {

/// `dataset.batch(samples)`, with their numbers in it. An error of LibTorch or of the standard
/// library, which names no sample, is told with the first one that no batch can be made of or, if
/// each can be read by itself, with the first of them: they do not fit together.
std::unique_ptr<Batch> read_batch(const Dataset& dataset, std::span<const int64_t> samples);

}  // namespace phalanx
