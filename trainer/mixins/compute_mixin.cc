// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/compute_mixin.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "trainer/config/tree/node.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/plan/run_plan.h"

namespace phalanx {
namespace {

using compute::Gemm;

constexpr const char* kSectionName = "compute";
constexpr const char* kField = "gemm";

// The reason becomes the value's origin, so that config.yaml tells it beside the value.
void record(config::Node& tree, Gemm taken, const std::string& why) {
  config::Node value = config::Node::plain(std::string(compute::name_of(taken)));
  value.origin.source = std::make_shared<const config::Source>(
      config::Source{.kind = config::Source::Kind::program, .name = why, .text = {}});
  config::Node* section = tree.find(kSectionName);
  if (section == nullptr || !section->is_map()) {
    section = &tree.set(kSectionName, config::Node::map());
  }
  section->set(kField, std::move(value));
}

}  // namespace

void ComputeConfig::describe(config::Schema<ComputeConfig>& s) {
  s.field(
       kField, &ComputeConfig::gemm,
       "what computes float32 matrix products on the CPU. auto: the fastest, timed for the "
       "model and kept; default: what LibTorch takes; mkl: MKL's kernels for Intel's CPUs on any "
       "CPU; onednn: oneDNN")
      .choices({{"auto", Gemm::automatic},
                {"default", Gemm::library_default},
                {"mkl", Gemm::mkl},
                {"onednn", Gemm::onednn}})
      .resume_may_change();
}

void ComputeMixinBase::fill_plan(const ComputeConfig& config, RunPlan& plan) {
  plan.products = {.gemm = config.gemm, .record = record};
}

void ComputeMixinBase::describe_choice(const TrainerBase& trainer, std::vector<ScreenLine>& lines) {
  if (!trainer.device().is_cpu()) return;
  const config::Node& gemm =
      *trainer.resolved_config().find_path(config::join_path(kSectionName, kField));
  lines.push_back({"products", fmt::format("{} ({})", gemm.text, gemm.origin.text())});
}

}  // namespace phalanx
