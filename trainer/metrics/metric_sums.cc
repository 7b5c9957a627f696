// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/metric_sums.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "trainer/ranks/collectives/numbers.h"
#include "trainer/ranks/ranks.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

// A copy: a view would keep all that it is a view of.
at::Tensor own_double(const at::Tensor& values) {
  return values.detach().to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
}

// What this rank has of a metric, in host memory, and how much all ranks have.
struct Share {
  at::Tensor sums;  // [n]
  at::Tensor rows;  // [m, columns]
};

// The sizes that ranks tell each other of each metric.
enum Size : size_t { kSums, kRows, kColumns, kSizes };

struct Sizes {
  int64_t sums = 0;
  int64_t columns = 0;
  std::vector<int64_t> rows;  // of each rank
  bool is_fed() const { return sums > 0 || columns > 0; }
  int64_t all_rows() const {
    int64_t all = 0;
    for (const int64_t count : rows) all += count;
    return all;
  }
};

int64_t same_size(int64_t before, int64_t next, const std::string& name, const char* what) {
  if (before == 0 || next == 0 || before == next) return std::max(before, next);
  throw std::logic_error(fmt::format(
      "the metric '{}' has {} {} of one micro-batch and {} of another: they must be as many", name,
      before, what, next));
}

std::vector<Sizes> exchange_sizes(const std::vector<Share>& shares,
                                  const std::vector<std::string>& names, const Ranks& ranks) {
  std::vector<int64_t> mine;
  for (const Share& share : shares) {
    const bool has_rows = share.rows.defined();
    mine.push_back(share.sums.defined() ? share.sums.numel() : 0);
    mine.push_back(has_rows ? share.rows.size(0) : 0);
    mine.push_back(has_rows ? share.rows.size(1) : 0);
  }
  const std::vector<int64_t> all = ranks.is_single_rank() ? mine : all_gather_numbers(ranks, mine);
  std::vector<Sizes> sizes(shares.size());
  for (size_t place = 0; place < all.size(); place += kSizes) {
    const size_t metric = place / kSizes % shares.size();
    Sizes& of_metric = sizes[metric];
    of_metric.sums = same_size(of_metric.sums, all[place + kSums], names[metric], "sums");
    of_metric.columns =
        same_size(of_metric.columns, all[place + kColumns], names[metric], "columns");
    of_metric.rows.push_back(all[place + kRows]);
  }
  return sizes;
}

// All metrics' sums travel together.
std::vector<std::vector<double>> add_sums(const std::vector<Share>& shares,
                                          const std::vector<Sizes>& sizes, const Ranks& ranks) {
  std::vector<at::Tensor> parts;
  for (size_t i = 0; i < shares.size(); ++i) {
    parts.push_back(shares[i].sums.defined() ? shares[i].sums
                                             : at::zeros({sizes[i].sums}, at::kDouble));
  }
  const at::Tensor all = at::cat(parts);
  if (!ranks.is_single_rank() && all.numel() > 0) ranks.all_reduce(all);
  std::vector<std::vector<double>> sums;
  const auto* next = all.const_data_ptr<double>();
  for (const Sizes& size : sizes) {
    sums.emplace_back(next, next + size.sums);
    next += size.sums;
  }
  return sums;
}

// Ranks have unlike numbers of rows, and send as many as the one with the most.
at::Tensor gather_rows(const Share& share, const Sizes& sizes, const Ranks& ranks) {
  if (sizes.all_rows() == 0) return {};
  if (ranks.is_single_rank()) return share.rows;
  const int64_t most = *std::ranges::max_element(sizes.rows);
  const at::Tensor mine = at::zeros({most, sizes.columns}, at::kDouble);
  if (share.rows.defined()) mine.narrow(0, 0, share.rows.size(0)).copy_(share.rows);
  const at::Tensor all = at::empty({most * ranks.world_size(), sizes.columns}, at::kDouble);
  ranks.all_gather(all, mine);
  std::vector<at::Tensor> parts;
  for (size_t rank = 0; rank < sizes.rows.size(); ++rank) {
    parts.push_back(all.narrow(0, static_cast<int64_t>(rank) * most, sizes.rows[rank]));
  }
  return at::cat(parts).contiguous();
}

// Whether memory has ended: who calls explains that.
bool is_of_memory(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         std::string_view(error.what()).find("can't allocate memory") != std::string_view::npos;
}

// Calls `function`, and has what else it throws name the metric.
template <class Function>
auto naming(const std::string& name, const Function& function) {
  try {
    return function();
  } catch (const std::exception& error) {
    if (is_of_memory(error)) throw;
    throw std::logic_error(fmt::format("the metric '{}': {}", name, error_text(error)));
  }
}

}  // namespace

MetricSums::MetricSums(const MetricSet& set, Phase phase) : phase_(phase) {
  for (const auto& [name, metric, where] : set.entries()) {
    declared_.push_back(name);
    if (is_measured(where, phase)) {
      measured_.push_back({.name = name, .metric = metric, .sums = {}, .rows = {}});
    }
  }
}

void MetricSums::add(const Batch& batch, const std::vector<FedMetric>& fed) {
  if (fed.empty()) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, inputs] : fed) {
    const auto measured = std::ranges::find(measured_, name, &Measured::name);
    if (measured != measured_.end()) {
      if (batch.counted_tokens() > 0) add_to(*measured, inputs);
      continue;
    }
    if (std::ranges::find(declared_, name) != declared_.end()) continue;
    throw std::logic_error(fmt::format(
        "the task feeds a metric '{}', and declares {}: declare_metrics names all of them", name,
        declared_.empty() ? "none" : fmt::format("{}", fmt::join(declared_, ", "))));
  }
}

void MetricSums::add_to(Measured& measured, const MetricInputs& inputs) const {
  const MetricPart part = naming(measured.name, [&] { return measured.metric->measure(inputs); });
  if (part.sums.defined()) {
    if (!measured.sums.defined()) {
      measured.sums = own_double(part.sums).reshape(-1);
    } else {
      same_size(measured.sums.numel(), part.sums.numel(), measured.name, "sums");
      measured.sums.add_(part.sums.detach().reshape(-1).to(measured.sums.device()));
    }
  }
  if (part.rows.defined() && part.rows.size(0) > 0) {
    if (!measured.rows.empty()) {
      same_size(measured.rows.front().size(1), part.rows.size(1), measured.name, "columns");
    }
    measured.rows.push_back(own_double(part.rows));
  }
}

void MetricSums::clear() {
  for (Measured& measured : measured_) {
    measured.sums.reset();
    measured.rows.clear();
  }
}

NamedValues MetricSums::values(const Ranks& ranks) const {
  if (empty()) return {};
  const at::NoGradGuard no_grad;
  std::vector<Share> shares;
  std::vector<std::string> names;
  for (const Measured& measured : measured_) {
    Share share;
    if (measured.sums.defined()) share.sums = measured.sums.to(at::kCPU);
    if (!measured.rows.empty()) share.rows = at::cat(measured.rows).to(at::kCPU).contiguous();
    shares.push_back(std::move(share));
    names.push_back(measured.name);
  }
  const std::vector<Sizes> sizes = exchange_sizes(shares, names, ranks);
  std::vector<std::vector<double>> sums = add_sums(shares, sizes, ranks);
  NamedValues all;
  for (size_t i = 0; i < measured_.size(); ++i) {
    const Metric& metric = *measured_[i].metric;
    if (!sizes[i].is_fed() && phase_ == Phase::train) continue;
    const std::vector<std::string> suffixes = metric.names();
    std::vector<double> values(suffixes.size(), std::numeric_limits<double>::quiet_NaN());
    if (sizes[i].is_fed()) {
      const MetricTotals totals{.sums = std::move(sums[i]),
                                .rows = gather_rows(shares[i], sizes[i], ranks)};
      values = naming(names[i], [&] { return metric.values(totals); });
    }
    if (values.size() != suffixes.size()) {
      throw std::logic_error(fmt::format("the metric '{}' has {} names and {} values", names[i],
                                         suffixes.size(), values.size()));
    }
    for (size_t value = 0; value < values.size(); ++value) {
      all.emplace_back(metric_value_name(names[i], suffixes[value]), values[value]);
    }
  }
  return all;
}

void append_metrics(NamedValues& values, const NamedValues& metrics) {
  for (const auto& metric : metrics) {
    const bool is_taken =
        std::ranges::any_of(values, [&](const auto& value) { return value.first == metric.first; });
    if (is_taken) {
      throw std::logic_error(fmt::format(
          "the task declares a metric '{}', and has another value of that name", metric.first));
    }
    values.push_back(metric);
  }
}

}  // namespace phalanx
