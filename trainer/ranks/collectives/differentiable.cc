// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/differentiable.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/tensors/tensors.h"

namespace phalanx::differentiable {
namespace {

// One call: what it computes, and how its gradient is computed. Shared with autograd's graph.
struct Call : torch::CustomClassHolder {
  explicit Call(const Ranks& with) : ranks(with) {}

  virtual at::Tensor run(const at::Tensor& input) const = 0;
  // The gradient of the input, by that of the output. Made of the functions of this file, so that
  // it can be differentiated again.
  virtual at::Tensor gradient(const at::Tensor& of_output) const = 0;

  Ranks ranks;
};

struct Collective : torch::autograd::Function<Collective> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const c10::intrusive_ptr<Call>& call, const at::Tensor& input) {
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    return call->run(input.contiguous());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto call =
        c10::static_intrusive_pointer_cast<Call>(context->saved_data["call"].toCapsule());
    return {at::Tensor(), call->gradient(gradients.front())};  // the first: of `call`
  }
};

template <class Which, class... Arguments>
at::Tensor apply(const at::Tensor& input, Arguments&&... arguments) {
  const c10::intrusive_ptr<Call> call =
      c10::make_intrusive<Which>(std::forward<Arguments>(arguments)...);
  return Collective::apply(call, input);
}

// The first dimension becomes `size`.
at::Tensor empty_with_rows(const at::Tensor& like, int64_t size) {
  std::vector<int64_t> sizes = like.sizes().vec();
  if (sizes.empty()) sizes.push_back(1);
  sizes.front() = size;
  return tensors::empty(sizes, like.options());
}

void require_parts(std::string_view operation, const at::Tensor& input, const Ranks& ranks) {
  if (input.dim() > 0 && input.size(0) % ranks.world_size() == 0) return;
  throw std::invalid_argument(
      fmt::format("{}: the first dimension is cut into a part for each of {} ranks, and the tensor "
                  "has {}",
                  operation, ranks.world_size(),
                  input.dim() == 0 ? "no dimension" : fmt::format("{} rows", input.size(0))));
}

void require_linear(std::string_view operation, Reduction reduction) {
  if (reduction == Reduction::sum || reduction == Reduction::average) return;
  throw std::invalid_argument(fmt::format(
      "{}: autograd goes through a sum or an average, and no other reduction", operation));
}

struct Gather final : Call {
  Gather(const Ranks& with, const at::Tensor& input) : Call(with), sizes(input.sizes().vec()) {}

  at::Tensor run(const at::Tensor& input) const override {
    const int64_t rows = input.dim() == 0 ? 1 : input.size(0);
    at::Tensor output = empty_with_rows(input, rows * ranks.world_size());
    ranks.all_gather(output, input);
    return output;
  }
  at::Tensor gradient(const at::Tensor& of_output) const override {
    return reduce_scatter(ranks, of_output).view(sizes);
  }

  std::vector<int64_t> sizes;
};

struct ReduceScatter final : Call {
  ReduceScatter(const Ranks& with, Reduction by) : Call(with), reduction(by) {}

  at::Tensor run(const at::Tensor& input) const override {
    at::Tensor output = empty_with_rows(input, input.size(0) / ranks.world_size());
    ranks.reduce_scatter(output, input, reduction);
    return output;
  }
  at::Tensor gradient(const at::Tensor& of_output) const override {
    const at::Tensor gathered = all_gather(ranks, of_output);
    return reduction == Reduction::sum ? gathered : gathered.div(ranks.world_size());
  }

  Reduction reduction;
};

struct AllReduce final : Call {
  AllReduce(const Ranks& with, Reduction by) : Call(with), reduction(by) {}

  at::Tensor run(const at::Tensor& input) const override {
    at::Tensor output = input.clone();
    ranks.all_reduce(output, reduction);
    return output;
  }
  at::Tensor gradient(const at::Tensor& of_output) const override {
    return all_reduce(ranks, of_output, reduction);
  }

  Reduction reduction;
};

struct AllToAll final : Call {
  using Call::Call;

  at::Tensor run(const at::Tensor& input) const override {
    at::Tensor output = empty_with_rows(input, input.size(0));
    ranks.all_to_all(output, input);
    return output;
  }
  at::Tensor gradient(const at::Tensor& of_output) const override {
    return all_to_all(ranks, of_output);
  }
};

}  // namespace

at::Tensor all_gather(const Ranks& ranks, const at::Tensor& input) {
  return apply<Gather>(input, ranks, input);
}

at::Tensor reduce_scatter(const Ranks& ranks, const at::Tensor& input, Reduction reduction) {
  require_linear("reduce-scatter", reduction);
  require_parts("reduce-scatter", input, ranks);
  return apply<ReduceScatter>(input, ranks, reduction);
}

at::Tensor all_reduce(const Ranks& ranks, const at::Tensor& input, Reduction reduction) {
  require_linear("all-reduce", reduction);
  return apply<AllReduce>(input, ranks, reduction);
}

at::Tensor all_to_all(const Ranks& ranks, const at::Tensor& input) {
  require_parts("all-to-all", input, ranks);
  return apply<AllToAll>(input, ranks);
}

}  // namespace phalanx::differentiable
