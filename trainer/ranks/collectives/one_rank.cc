// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/one_rank.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "trainer/ranks/collectives/start_operation.h"

namespace phalanx {
namespace {

using Tensors = std::vector<at::Tensor>;

// A place for each rank in `whole`, in the shape of one rank's tensor.
Tensors parts_of(std::string_view operation, const at::Tensor& whole, const at::Tensor& part,
                 const Ranks& ranks) {
  if (!whole.defined()) {
    throw std::invalid_argument(
        fmt::format("{}: rank {} has no tensor for all ranks' parts", operation, ranks.rank()));
  }
  if (whole.numel() != part.numel() * ranks.world_size() ||
      whole.scalar_type() != part.scalar_type()) {
    throw std::invalid_argument(
        fmt::format("{}: {} elements of {} are not those of {} ranks with {} of {} each", operation,
                    whole.numel(), c10::toString(whole.scalar_type()), ranks.world_size(),
                    part.numel(), c10::toString(part.scalar_type())));
  }
  Tensors parts;
  const at::Tensor flat = whole.view({-1});
  for (int64_t rank = 0; rank < ranks.world_size(); ++rank) {
    parts.push_back(flat.narrow(0, rank * part.numel(), part.numel()).view(part.sizes()));
  }
  return parts;
}

}  // namespace

Pending start_reduce(const Ranks& ranks, const at::Tensor& tensor, int64_t destination,
                     Reduction reduction) {
  require_open(ranks, "reduce");
  require_rank(ranks, "reduce", destination);
  const c10d::ReduceOp by = reduce_op("reduce", reduction, tensor.scalar_type());
  if (ranks.is_single_rank()) return {};
  return start_operation(ranks,
                         fmt::format("reduce ({} of {} elements, to rank {})", to_string(reduction),
                                     tensor.numel(), destination),
                         [&](c10d::ProcessGroup& group) {
                           Tensors tensors{tensor};
                           c10d::ReduceOptions options;
                           options.reduceOp = by;
                           options.rootRank = destination;
                           return group.reduce(tensors, options);
                         });
}

Pending start_gather(const Ranks& ranks, const at::Tensor& output, const at::Tensor& input,
                     int64_t destination) {
  require_open(ranks, "gather");
  require_rank(ranks, "gather", destination);
  std::vector<Tensors> outputs;
  if (ranks.rank() == destination) outputs.push_back(parts_of("gather", output, input, ranks));
  if (ranks.is_single_rank()) {
    outputs.front().front().copy_(input);
    return {};
  }
  return start_operation(
      ranks, fmt::format("gather (of {} elements, to rank {})", input.numel(), destination),
      [&](c10d::ProcessGroup& group) {
        Tensors inputs{input};
        c10d::GatherOptions options;
        options.rootRank = destination;
        return group.gather(outputs, inputs, options);
      });
}

Pending start_scatter(const Ranks& ranks, const at::Tensor& output, const at::Tensor& input,
                      int64_t source) {
  require_open(ranks, "scatter");
  require_rank(ranks, "scatter", source);
  std::vector<Tensors> inputs;
  if (ranks.rank() == source) inputs.push_back(parts_of("scatter", input, output, ranks));
  if (ranks.is_single_rank()) {
    output.copy_(inputs.front().front());
    return {};
  }
  return start_operation(
      ranks, fmt::format("scatter (of {} elements, from rank {})", output.numel(), source),
      [&](c10d::ProcessGroup& group) {
        Tensors outputs{output};
        c10d::ScatterOptions options;
        options.rootRank = source;
        return group.scatter(outputs, inputs, options);
      });
}

void reduce(const Ranks& ranks, const at::Tensor& tensor, int64_t destination,
            Reduction reduction) {
  start_reduce(ranks, tensor, destination, reduction).wait();
}
void gather(const Ranks& ranks, const at::Tensor& output, const at::Tensor& input,
            int64_t destination) {
  start_gather(ranks, output, input, destination).wait();
}
void scatter(const Ranks& ranks, const at::Tensor& output, const at::Tensor& input,
             int64_t source) {
  start_scatter(ranks, output, input, source).wait();
}

}  // namespace phalanx
