// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/power_sgd/options.h"

#include <limits>
#include <optional>
#include <string>

#include "trainer/config/tree/schema.h"

namespace phalanx::power_sgd {
namespace {

template <class Fields>
void describe_shared(config::Schema<Fields>& s) {
  s.field("matrix_approximation_rank", &Fields::matrix_approximation_rank,
          "columns of P and Q, whose product stands for a gradient: more are more exact and larger")
      .at_least(1);
  s.field("start_powerSGD_iter", &Fields::start_powerSGD_iter,
          "reductions that come before the first that compresses; torch advises a tenth of the run")
      .unit("steps")
      .at_least(0);
  s.field("use_error_feedback", &Fields::use_error_feedback,
          "add to a gradient what the compression before has left out of it: a copy of all "
          "gradients on each rank, in checkpoints too");
  s.field("warm_start", &Fields::warm_start,
          "begin with the Qs of the step before; false: with random ones in each step");
  s.field("random_seed", &Fields::random_seed, "of random Qs")
      .in_range(0, std::numeric_limits<uint32_t>::max());
  s.field("compression_stats_logging_frequency", &Fields::compression_stats_logging_frequency,
          "steps between two lines that say how far gradients were compressed")
      .unit("steps")
      .at_least(1)
      .resume_may_change();
  s.check([](const Fields& fields) -> std::optional<std::string> {
    const bool remembers = fields.use_error_feedback || fields.warm_start;
    if (!remembers || fields.start_powerSGD_iter > 1) return std::nullopt;
    return "start_powerSGD_iter must be above 1 with use_error_feedback or warm_start, as the "
           "buckets of gradients are made anew after the first step: set it to 2 or more, or both "
           "to false";
  });
}

}  // namespace

void LayerOptions::describe(config::Schema<LayerOptions>& s) {
  describe_shared(s);
  s.field("min_compression_rate", &LayerOptions::min_compression_rate,
          "a gradient is compressed where it has more than so many times the elements of its P and "
          "Q, and reduced as it is otherwise")
      .at_least(0);
  s.field("orthogonalization_epsilon", &LayerOptions::orthogonalization_epsilon,
          "added to the norms of columns of P and Q, up to a rank of 2: 1e-8 keeps gradients of "
          "zeros from becoming NaN")
      .at_least(0);
  s.field("batch_tensors_with_same_shape", &LayerOptions::batch_tensors_with_same_shape,
          "compress the gradients of one shape in a bucket together");
}

void BucketOptions::describe(config::Schema<BucketOptions>& s) { describe_shared(s); }

}  // namespace phalanx::power_sgd
