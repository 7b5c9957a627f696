// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/remote_embedding/served_tables.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <exception>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "trainer/tensors/tensors.h"

namespace phalanx::remote_embedding {
namespace {

constexpr char kRows = 'r';
constexpr char kWhole = 'w';

void require_fit(const TableGradient& pushed, const at::Tensor& table, int64_t number) {
  const at::Tensor& gradient = pushed.gradient;
  const bool fits = pushed.numbers.defined() ? pushed.numbers.dim() == 1 && gradient.dim() == 2 &&
                                                   gradient.size(0) == pushed.numbers.size(0) &&
                                                   gradient.size(1) == table.size(1)
                                             : gradient.sizes() == table.sizes();
  if (fits) return;
  throw std::invalid_argument(
      fmt::format("gradients of another shape were pushed for table {}", number));
}

}  // namespace

rpc::Values look_up_call(int64_t pass, int64_t table, const at::Tensor& numbers) {
  rpc::Values values{.text = fmt::format("{} {}", pass, table)};
  if (numbers.defined()) values.tensors.push_back(numbers);
  return values;
}

rpc::Values pass_is_over_call(int64_t rank, int64_t pass, const std::string& text) {
  return {.text = fmt::format("{} {}\n{}", rank, pass, text)};
}

rpc::Values push_call(int64_t rank, int64_t round, const TableGradients& gradients) {
  rpc::Values values{.text = fmt::format("{} {}", rank, round)};
  for (const TableGradient& each : gradients) {
    const bool has_rows = each.numbers.defined();
    values.text += fmt::format(" {} {}", each.table, has_rows ? kRows : kWhole);
    if (has_rows) values.tensors.push_back(each.numbers);
    values.tensors.push_back(each.gradient.detach().contiguous());
  }
  return values;
}

ServedTables::ServedTables(std::vector<at::Tensor> tables, int64_t trainers)
    : tables_(std::move(tables)), trainers_(trainers), passes_(trainers), rounds_(trainers) {}

const at::Tensor& ServedTables::table(int64_t number) const {
  const auto place = static_cast<size_t>(number);
  if (number >= 0 && place < tables_.size() && tables_[place].defined()) return tables_[place];
  throw std::invalid_argument(fmt::format("this server has no table {}", number));
}

rpc::Values ServedTables::values(const Lookup& lookup) const {
  const at::NoGradGuard no_grad;
  const at::Tensor& values = table(lookup.table);
  if (!lookup.numbers.defined()) return {.tensors = {values}};
  return {.tensors = {values.index_select(0, lookup.numbers)}};
}

void ServedTables::publish(int64_t pass) {
  std::vector<Lookup> answered;
  {
    const std::scoped_lock lock(mutex_);
    published_ = pass;
    std::erase_if(waiting_, [&](const Lookup& lookup) {
      if (lookup.pass > pass) return false;
      answered.push_back(lookup);
      return true;
    });
  }
  for (const Lookup& lookup : answered) {
    try {
      lookup.promise.set(values(lookup));
    } catch (...) {
      lookup.promise.fail(std::current_exception());
    }
  }
}

rpc::Future ServedTables::look_up(const rpc::Values& asked) {
  Lookup lookup;
  std::istringstream text(asked.text);
  text >> lookup.pass >> lookup.table;
  if (!asked.tensors.empty()) lookup.numbers = asked.tensors.front();
  {
    const std::scoped_lock lock(mutex_);
    if (published_ < lookup.pass) return waiting_.emplace_back(std::move(lookup)).promise.future();
  }
  return rpc::Future(values(lookup));
}

rpc::Values ServedTables::push(const rpc::Values& pushed) {
  std::istringstream text(pushed.text);
  int64_t rank = 0;
  int64_t round = 0;
  text >> rank >> round;
  TableGradients gradients;
  size_t next = 0;
  int64_t number = 0;
  for (char kind = 0; text >> number >> kind;) {
    TableGradient& each = gradients.emplace_back(TableGradient{.table = number, .gradient = {}});
    if (kind == kRows) each.numbers = pushed.tensors.at(next++);
    each.gradient = pushed.tensors.at(next++);
    require_fit(each, table(number), number);
  }
  rounds_.put(round, rank, std::move(gradients));
  return {};
}

std::vector<at::Tensor> ServedTables::take_means(int64_t round) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> means(tables_.size());
  for (const TableGradients& of_rank : rounds_.take(round)) {
    for (const TableGradient& each : of_rank) {
      at::Tensor& mean = means[static_cast<size_t>(each.table)];
      // Divided first, as DDP does.
      const at::Tensor share = each.gradient.div(trainers_);
      if (each.numbers.defined()) {
        const at::Tensor& table = tables_[static_cast<size_t>(each.table)];
        if (!mean.defined()) mean = tensors::zeros(table.sizes(), table.options());
        mean.index_add_(0, each.numbers, share);
      } else if (mean.defined()) {
        mean.add_(share);
      } else {
        mean = share;
      }
    }
  }
  return means;
}

rpc::FunctionTable ServedTables::functions() {
  const auto pass_is_over = [this](const rpc::Values& said) {
    std::istringstream text(said.text);
    int64_t rank = 0;
    int64_t pass = 0;
    text >> rank >> pass;
    const size_t line = said.text.find('\n');
    passes_.put(pass, rank, line == std::string::npos ? "" : said.text.substr(line + 1));
    return rpc::Values{};
  };
  return {
      {kLookUp, rpc::function_of([this](const rpc::Values& asked) { return look_up(asked); })},
      {kPassIsOver, rpc::function_of(pass_is_over)},
      {kPush, rpc::function_of([this](const rpc::Values& pushed) { return push(pushed); })},
  };
}

}  // namespace phalanx::remote_embedding
