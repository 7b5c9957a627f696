// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "trainer/compute/gemm.h"
#include "trainer/config/tree/node.h"
#include "trainer/plan/run_plan.h"
#include "trainer/ranks/ranks.h"
#include "trainer/run/load_config.h"

namespace phalanx {

/// What a run's matrix products are computed with.
struct ProductChoice {
  compute::Gemm gemm = compute::Gemm::library_default;
  std::string why;  ///< "measured on this machine: 2.1 times the default"; empty: the config asks.
};

/// What the config asks for. For `auto`: the variable PHALANX_GEMM, else the fastest for the
/// config's model, timed in child processes or known from the user's cache; LibTorch's default
/// where GPUs compute. A run that is continued keeps what it has begun with. Comes before ranks are
/// there, in the process that starts them or in rank 0 (`is_first`; the others take its choice),
/// and needs a process of one thread. Throws UserError for a variable that names none.
ProductChoice choose_products(const UserConfig& user, const config::Node& resolved,
                              const RunPlan& plan, bool is_first);

/// What computes the products of a text that is written token by token, which have one row for each
/// text: the variable PHALANX_GEMM, else MKL's kernels for Intel's CPUs where they can be used and
/// are not the default. They are faster there (benchmarks/results/2026-11-25-generation.md); what
/// training was measured with says nothing of such products.
compute::Gemm gemm_for_writing();

/// A user's config, and the plan that follows from it.
struct PlannedConfig {
  UserConfig user;
  RunPlan plan;
};

/// Both with the choice of rank 0 in them. Where the config asks for `auto`, a run in `exp_dir`
/// keeps what it has begun with. What this host cannot use becomes the default, with a warning.
/// Every rank calls it.
PlannedConfig with_products(UserConfig user, RunPlan plan, const std::filesystem::path& exp_dir,
                            const ProductChoice& choice, const Ranks& ranks);

/// Has this rank's products computed as the plan says. Where this host cannot, they stay as they
/// are and rank 0 warns. Every rank calls it, before its first product.
void use_products(const RunPlan& plan, const Ranks& ranks);

}  // namespace phalanx
