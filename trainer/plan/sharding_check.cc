// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/sharding_check.h"

#include <string>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/parallel/parallel_config.h"

namespace phalanx {
namespace {

// What autocast computes in; empty: it is not used.
std::string autocast_dtype(const config::Node& resolved) {
  const config::Node* section = resolved.find("mixed_precision");
  if (section == nullptr || section->find("enabled")->text != "true") return {};
  return section->find("dtype")->text;
}

// float16 gradients need a loss scale, which comes with mixed_precision, and must not be kept in it
// once that is taken away.
void require_loss_scale(const FsdpMixedPrecision& precision, const std::string& autocast) {
  const bool has_scale = autocast == "float16";
  const bool is_told_half =
      precision.param == LowPrecision::float16 || precision.reduce == LowPrecision::float16;
  if (is_told_half && !has_scale) {
    throw UserError(
        "parallel.fsdp.mixed_precision asks for float16, whose gradients need a loss scale: set "
        "mixed_precision.enabled=true and mixed_precision.dtype=float16, or use bfloat16");
  }
  const auto reduces_in =
      precision.reduce.value_or(precision.param.value_or(LowPrecision::float16));
  const bool keeps_half = precision.keep_low_precision_grads && reduces_in == LowPrecision::float16;
  if (has_scale && keeps_half) {
    throw UserError(
        "parallel.fsdp.mixed_precision.keep_low_precision_grads would keep gradients in float16 "
        "without the loss scale that brings them into its range: leave it out, or use bfloat16");
  }
}

}  // namespace

void require_sharding(const config::Node& resolved, const Ranks& ranks) {
  const config::Node* section = resolved.find("parallel");
  if (section == nullptr || ranks.is_alone()) return;
  const auto config = config::read<ParallelConfig>(*section);
  if (!config.use_fsdp) return;
  const sharding::Mesh mesh = mesh_of(config.sharding_strategy, config.fsdp, ranks.rank(),
                                      ranks.world_size(), ranks.local_world_size());
  after_forward(config.sharding_strategy, config.fsdp, mesh.shards);
  require_loss_scale(config.fsdp.mixed_precision, autocast_dtype(resolved));
}

}  // namespace phalanx
