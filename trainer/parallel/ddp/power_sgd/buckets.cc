// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/power_sgd/buckets.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <utility>

#include "trainer/parallel/ddp/bucket_mean.h"
#include "trainer/parallel/ddp/power_sgd/orthogonalize.h"

namespace phalanx::power_sgd {
namespace {

int64_t side_of(int64_t elements) {
  return static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(elements))));
}

// The sum of the sides of all buckets is not larger, whatever the buckets are: each holds a
// parameter at least, and the sum of the roots of b parts of n is at most the root of b n.
int64_t most_of_sides(int64_t elements, std::size_t parameters) {
  const auto buckets = static_cast<int64_t>(parameters);
  return side_of(elements * buckets) + buckets;
}

int64_t elements_of(const std::vector<NamedParameter>& parameters) {
  int64_t elements = 0;
  for (const NamedParameter& parameter : parameters) elements += parameter.tensor.numel();
  return elements;
}

}  // namespace

Buckets::Buckets(const BucketOptions& options, Ranks ranks,
                 const std::vector<NamedParameter>& parameters, CommHook::Tell tell)
    : options_(options),
      ranks_(std::move(ranks)),
      tell_(std::move(tell)),
      counts_(count_options(options)),
      shared_(counts_, ranks_),
      errors_(ranks_) {
  const int64_t elements = elements_of(parameters);
  const int64_t sides = most_of_sides(elements, parameters.size());
  const auto room = parameters.front().tensor.options().dtype(at::kDouble).requires_grad(false);
  if (options_.use_error_feedback) {
    for (const NamedParameter& parameter : parameters) {
      const at::Tensor error =
          at::zeros({parameter.tensor.numel()}, parameter.tensor.options().requires_grad(false));
      error_of_[parameter.tensor.unsafeGetTensorImpl()] = error;
      errors_.add("of." + parameter.name, error);
    }
    padding_errors_ = at::zeros({2 * sides}, room);
    errors_.add("padding", padding_errors_);
  }
  if (options_.warm_start) {
    // A side of s has s or fewer columns, and s * s - n < 2 * s.
    const int64_t columns = std::min(sides, options_.matrix_approximation_rank);
    qs_ = at::zeros({std::min(sides * columns, elements + 2 * sides)}, room);
    shared_.add("qs", qs_);
  }
}

std::vector<NamedStateful> Buckets::kept_states() {
  std::vector<NamedStateful> states{{.name = "batched_powersgd", .state = &shared_}};
  if (options_.use_error_feedback) {
    states.push_back(
        {.name = fmt::format("batched_powersgd_errors_of_{}_ranks", ranks_.world_size()),
         .state = &errors_});
  }
  return states;
}

Buckets::Future Buckets::run(c10d::GradBucket& bucket) {
  const at::NoGradGuard no_grad;
  if (!counts_.compresses()) {
    if (bucket.isLast()) counts_.end_iteration();
    return start_bucket_mean(bucket.getBuffer(), ranks_);
  }
  if (bucket.getIndex() == 0) {
    buckets_.clear();  // A step that has failed leaves some.
    padding_used_ = 0;
    qs_used_ = 0;
    errors_.begin();
  }
  Bucket& one = buckets_.emplace_back();
  one.buffer = bucket.getBuffer();
  one.reduced = future_of(one.buffer);
  const Future reduced = one.reduced;
  find_memory(bucket, one, side_of(one.buffer.numel()));
  start(one);
  if (bucket.isLast()) finish();
  return reduced;
}

void Buckets::find_memory(const c10d::GradBucket& bucket, Bucket& one, int64_t side) {
  const int64_t rank = std::min(side, options_.matrix_approximation_rank);
  one.matrix = at::zeros({side, side}, one.buffer.options());
  one.p = at::empty({side, rank}, one.buffer.options());
  if (options_.use_error_feedback) {
    for (const at::Tensor& parameter : bucket.getParameters()) {
      one.errors.push_back(error_of_.at(parameter.unsafeGetTensorImpl()));
    }
    const int64_t padding = side * side - one.buffer.numel();
    one.errors.push_back(padding_errors_.narrow(0, padding_used_, padding));
    padding_used_ += padding;
  }
  if (options_.warm_start) {
    one.kept_q = qs_.narrow(0, qs_used_, side * rank).view({side, rank});
    qs_used_ += side * rank;
  }
  if (counts_.is_warm()) {
    one.q = one.kept_q.to(one.buffer.options()).clone();
  } else {
    one.q = at::randn({side, rank}, counts_.next_generator(), one.buffer.options().device(at::kCPU))
                .to(one.buffer.device());
  }
}

void Buckets::start(Bucket& bucket) {
  const at::Tensor values = bucket.matrix.view({-1});
  values.narrow(0, 0, bucket.buffer.numel()).copy_(bucket.buffer);
  if (options_.use_error_feedback) {
    int64_t begin = 0;
    for (const at::Tensor& error : bucket.errors) {
      values.narrow(0, begin, error.numel()).add_(error.to(values.options()));
      begin += error.numel();
    }
    bucket.before = values.clone();
  }
  counts_.count(bucket.buffer.numel(), 2 * bucket.q.numel());
  orthogonalize(bucket.q.unsqueeze(0), 0);
  at::matmul_out(bucket.p, bucket.matrix, bucket.q);
  bucket.sum = ranks_.start_all_reduce(bucket.p);
}

void Buckets::keep_errors(const Bucket& bucket) const {
  const at::Tensor error = bucket.before - bucket.matrix.view({-1});
  int64_t begin = 0;
  for (const at::Tensor& part : bucket.errors) {
    part.copy_(error.narrow(0, begin, part.numel()));
    begin += part.numel();
  }
}

void Buckets::finish() {
  for (Bucket& bucket : buckets_) {
    bucket.sum.wait();
    orthogonalize(bucket.p.unsqueeze(0), 0);
    at::matmul_out(bucket.q, bucket.matrix.t(), bucket.p);
    bucket.sum = ranks_.start_all_reduce(bucket.q);
  }
  for (Bucket& bucket : buckets_) {
    bucket.sum.wait();
    bucket.q.div_(ranks_.world_size());
    at::matmul_out(bucket.matrix, bucket.p, bucket.q.t());
    if (options_.use_error_feedback) keep_errors(bucket);
    if (options_.warm_start) bucket.kept_q.copy_(bucket.q);
    bucket.buffer.copy_(bucket.matrix.view({-1}).narrow(0, 0, bucket.buffer.numel()));
    bucket.reduced->markCompleted(bucket.buffer);
  }
  buckets_.clear();
  counts_.end_compressed(tell_);
}

}  // namespace phalanx::power_sgd
