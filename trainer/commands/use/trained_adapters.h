// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>

#include "trainer/checkpoint/load/load.h"
#include "trainer/config/tree/node.h"
#include "trainer/mixins/lora_config.h"

namespace phalanx {

struct Invocation;

/// The two matrices of an adapter, as they were saved.
struct AdapterMatrices {
  at::Tensor a;  ///< [rank, inputs]
  at::Tensor b;  ///< [outputs, rank]
  bool is_inputs_first = false;

  /// Values of the weight from element `begin` on, with the adapter in them, in single precision at
  /// least.
  at::Tensor merged(double scale, int64_t begin, const at::Tensor& values) const;
};

/// The adapters of a checkpoint, by the dotted name of their module.
struct TrainedAdapters {
  LoraConfig config;
  std::map<std::string, AdapterMatrices> by_module;
};

/// Whether a checkpoint holds adapters, and not a model.
bool holds_adapters(const Checkpoint& checkpoint);

/// Those of a checkpoint of a run with this config, for the model of this resolved section; all
/// that is read is compared with its checksums.
TrainedAdapters adapters_in(const Checkpoint& checkpoint, const config::Node& run,
                            const config::Node& model);

/// The model that they were trained beside, under our names: at `--base`, or where the run found
/// it. Throws UserError if it is not there, or is another one.
Checkpoint base_of(const Checkpoint& checkpoint, const config::Node& run,
                   const Invocation& invocation);

/// Where that is.
std::filesystem::path base_path(const config::Node& run, const Invocation& invocation);

}  // namespace phalanx
