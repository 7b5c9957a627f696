// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/api/model_base.h"
#include "trainer/api/parameters.h"
#include "trainer/base/cache_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/cli/terminal.h"
#include "trainer/compute/selection.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/schema.h"
#include "trainer/host/gpus.h"
#include "trainer/host/host.h"
#include "trainer/loop/training_config.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"
#include "trainer/run/run_config.h"

namespace phalanx {
namespace {

using compute::Gemm;

constexpr const char* kVariable = "PHALANX_GEMM";

std::optional<ProductChoice> choice_of_environment() {
  const char* text = std::getenv(kVariable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const std::optional<Gemm> gemm = compute::gemm_named(text);
  if (gemm && gemm != Gemm::automatic) return ProductChoice{.gemm = *gemm, .why = kVariable};
  throw UserError(fmt::format("{}={} names no way to compute products: default, mkl or onednn",
                              kVariable, text));
}

bool computes_on_gpus(const RunPlan& plan) {
  return plan.join.device == DeviceChoice::cuda ||
         (plan.join.device == DeviceChoice::automatic && usable_gpus() > 0);
}

// The model's weights that are matrices, found without giving it values.
std::vector<compute::WeightShape> weights_of(const config::Node& resolved) {
  std::shared_ptr<ModelBase> model;
  const auto deferred = DeferredInit::record([&] { model = make_chosen<ModelBase>(resolved); });
  std::vector<compute::WeightShape> shapes;
  for (const auto& parameter : named_parameters(*model)) {
    const at::Tensor& weight = parameter.tensor;
    if (weight.dim() == 2) shapes.push_back({.out = weight.size(0), .in = weight.size(1)});
  }
  return shapes;
}

std::string reason_of(const compute::Selection& selection) {
  if (!selection.is_measured) {
    return selection.notes.empty() ? "this machine has no other" : "not measured";
  }
  if (selection.gemm == Gemm::library_default) {
    return "measured on this machine: nothing else is 5 % faster";
  }
  return fmt::format("measured on this machine: {:.2f} times the default", selection.gain);
}

ProductChoice measure(const config::Node& resolved) {
  const compute::Selection selection =
      compute::select_gemm({.config = config::print_inline(*chosen_section<ModelBase>(resolved)),
                            .shapes = [&] { return weights_of(resolved); }},
                           cache_folder());
  std::string why = reason_of(selection);
  for (const std::string& note : selection.notes) why += "; " + note;
  return {.gemm = selection.gemm, .why = std::move(why)};
}

// What the run in this folder has begun with.
std::optional<ProductChoice> earlier_choice(const UserConfig& user,
                                            const std::filesystem::path& exp_dir) {
  const auto earlier = earlier_config(exp_dir, user);
  if (!earlier) return std::nullopt;
  RunPlan plan;
  user.entry->fill_plan(*earlier, plan);
  if (plan.products.gemm == Gemm::automatic) return std::nullopt;
  return ProductChoice{.gemm = plan.products.gemm, .why = "as this run began"};
}

// Rank 0's, before the others hear of it.
ProductChoice usable(ProductChoice choice) {
  const std::string reason = compute::why_unusable(choice.gemm);
  if (reason.empty()) return choice;
  const std::string text = fmt::format("compute.gemm={} cannot be used on {}: {}",
                                       compute::name_of(choice.gemm), host_name(), reason);
  print_warning(text + "; LibTorch's default takes its place, and the last bits of results differ");
  return {.gemm = Gemm::library_default, .why = text};
}

}  // namespace

ProductChoice choose_products(const UserConfig& user, const config::Node& resolved,
                              const RunPlan& plan, bool is_first) {
  if (plan.products.gemm != Gemm::automatic) return {.gemm = plan.products.gemm, .why = {}};
  if (auto given = choice_of_environment()) return *std::move(given);
  if (!is_first) return {};
  // with_products would take it anyway: nothing is timed for that.
  if (is_given(user, "exp_dir")) {
    if (auto earlier = earlier_choice(user, config::read<TrainerConfig>(resolved).exp_dir)) {
      return *std::move(earlier);
    }
  }
  if (computes_on_gpus(plan)) return {.gemm = Gemm::library_default, .why = "GPUs compute"};
  return measure(resolved);
}

Gemm gemm_for_writing() {
  if (const auto given = choice_of_environment()) return given->gemm;
  const std::vector<Gemm> all = compute::candidates();
  const bool has_mkl = std::find(all.begin(), all.end(), Gemm::mkl) != all.end();
  return has_mkl ? Gemm::mkl : Gemm::library_default;
}

PlannedConfig with_products(UserConfig user, RunPlan plan, const std::filesystem::path& exp_dir,
                            const ProductChoice& choice, const Ranks& ranks) {
  if (!plan.products.record) return {std::move(user), std::move(plan)};
  ProductChoice taken = choice;
  on_first_rank(ranks, [&] {
    if (plan.products.gemm == Gemm::automatic) {
      if (auto earlier = earlier_choice(user, exp_dir)) taken = *std::move(earlier);
    }
    taken = usable(std::move(taken));
  });
  taken.gemm = *compute::gemm_named(ranks.broadcast(std::string(compute::name_of(taken.gemm))));
  taken.why = ranks.broadcast(taken.why);
  // What was asked for and is taken keeps the origin where the user wrote it.
  if (taken.gemm != plan.products.gemm) plan.products.record(user.tree, taken.gemm, taken.why);
  plan.products.gemm = taken.gemm;
  return {std::move(user), std::move(plan)};
}

void use_products(const RunPlan& plan, const Ranks& ranks) {
  const Gemm gemm =
      plan.products.gemm == Gemm::automatic ? Gemm::library_default : plan.products.gemm;
  const std::string reason = compute::why_unusable(gemm);
  compute::use(reason.empty() ? gemm : Gemm::library_default);
  const std::string problem =
      reason.empty() ? std::string() : fmt::format("{} ({})", host_name(), reason);
  for (const std::string& text : ranks.all_gather(problem)) {
    if (text.empty() || !ranks.is_first()) continue;
    print_warning(
        fmt::format("compute.gemm={} cannot be used on {}: its ranks compute with "
                    "LibTorch's default, and their last bits differ from the others'",
                    compute::name_of(gemm), text));
    break;
  }
}

}  // namespace phalanx
