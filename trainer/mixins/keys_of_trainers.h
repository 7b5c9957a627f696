// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "trainer/config/tree/forward.h"

namespace phalanx {

/// How a trainer spreads its work over the ranks: each way has a section `parallel` of its own.
enum class Spreading : std::uint8_t {
  data_parallel,      ///< ParallelMixin: DDP and FSDP.
  parameter_servers,  ///< ParameterServerMixin
  remote_embeddings,  ///< RemoteEmbeddingMixin
  stages,             ///< PipelineMixin
};

/// Refuses keys of trainers that spread their work in another way, in a config as the user gave it.
/// Throws ConfigError with all of them: why this trainer has no such key, and which trainer has it.
void refuse_keys_of_others(const config::Node& tree, Spreading spreading);

}  // namespace phalanx
