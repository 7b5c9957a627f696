// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/kept_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "trainer/ranks/collectives/numbers.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

bool on_all_ranks(bool holds, const Ranks& ranks) {
  const int64_t here = holds ? 1 : 0;
  return all_reduce_numbers(ranks, std::span(&here, 1), Reduction::minimum).front() == 1;
}

}  // namespace

std::string brought_to_plan(std::span<const std::vector<ShardedTensorView>> parts,
                            const std::string& host, const PlanLimits& limits) {
  std::string text = fmt::format("{} {} {}\n", host, limits.file_bytes, limits.piece_bytes);
  for (const auto& part : parts) {
    text += "part\n";
    for (const ShardedTensorView& view : part) {
      text += fmt::format("{} {} {} {} {} {}", view.name, static_cast<int>(view.dtype), view.shape,
                          view.begin, view.end, view.replicas);
      if (view.box) text += fmt::format(" {} {}", view.box->offsets, view.box->sizes);
      text += '\n';
    }
  }
  return text;
}

std::shared_ptr<const WritePlan> KeptPlan::get(std::string brought, const Ranks& ranks,
                                               const std::function<WritePlan()>& make) {
  if (on_all_ranks(plan_ != nullptr && brought == brought_, ranks)) return plan_;
  plan_ = std::make_shared<const WritePlan>(make());
  brought_ = std::move(brought);
  return plan_;
}

}  // namespace phalanx
