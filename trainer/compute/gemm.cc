// SPDX-License-Identifier: Apache-2.0
#include "trainer/compute/gemm.h"

#include <array>
#include <stdexcept>

#include "trainer/compute/mkl_vendor_check.h"
#include "trainer/compute/onednn_products.h"

namespace phalanx::compute {
namespace {

struct Named {
  Gemm gemm;
  std::string_view name;
};

constexpr std::array kNames = {
    Named{Gemm::automatic, "auto"},
    Named{Gemm::library_default, "default"},
    Named{Gemm::mkl, "mkl"},
    Named{Gemm::onednn, "onednn"},
};

}  // namespace

std::string_view name_of(Gemm gemm) {
  for (const Named& named : kNames) {
    if (named.gemm == gemm) return named.name;
  }
  throw std::logic_error("a Gemm without a name");
}

std::optional<Gemm> gemm_named(std::string_view name) {
  for (const Named& named : kNames) {
    if (named.name == name) return named.gemm;
  }
  return std::nullopt;
}

std::string why_unusable(Gemm gemm) {
  if (gemm == Gemm::mkl && !mkl_asks_for_vendor())
    return "this LibTorch has no MKL that it affects";
  if (gemm == Gemm::onednn) return std::string(onednn_problem());
  return {};
}

std::vector<Gemm> candidates() {
  std::vector<Gemm> all{Gemm::library_default};
  if (mkl_asks_for_vendor() && !is_intel_cpu()) all.push_back(Gemm::mkl);
  if (onednn_problem().empty()) all.push_back(Gemm::onednn);
  return all;
}

void use(Gemm gemm) {
  if (gemm == Gemm::automatic) throw std::logic_error("Gemm::automatic is chosen, not used");
  answer_vendor_check(gemm == Gemm::mkl);
  replace_products(gemm == Gemm::onednn);
}

}  // namespace phalanx::compute
