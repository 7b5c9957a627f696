// SPDX-License-Identifier: Apache-2.0
#include "trainer/compute/onednn_products.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <optional>

namespace phalanx::compute {
namespace {

constexpr const char* kOperator = "mkldnn::_linear_pointwise";

using OptionalTensor = std::optional<at::Tensor>;
using Scalars = c10::List<std::optional<at::Scalar>>;
using Linear = at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                          c10::string_view, Scalars, std::optional<c10::string_view>);

// a b + bias by the one operator of LibTorch that gives oneDNN dense matrices of single precision.
at::Tensor linear(const at::Tensor& a, const at::Tensor& b, const OptionalTensor& bias) {
  static const auto handle =
      c10::Dispatcher::singleton().findSchemaOrThrow(kOperator, "").typed<Linear>();
  return handle.call(a, b.t(), bias, "none", Scalars(), std::nullopt);
}

bool is_plain_matrix(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat && tensor.dim() == 2 && tensor.numel() > 0 &&
         tensor.layout() == at::kStrided && !tensor.is_neg() &&
         (tensor.stride(0) == 1 || tensor.stride(1) == 1);
}

bool fit(const at::Tensor& a, const at::Tensor& b) {
  return is_plain_matrix(a) && is_plain_matrix(b) && a.size(1) == b.size(0);
}

at::Tensor mm(const at::Tensor& a, const at::Tensor& b) {
  return fit(a, b) ? linear(a, b, std::nullopt) : at::cpu::mm(a, b);
}

bool is_bias(const at::Tensor& tensor, const at::Tensor& b) {
  return tensor.scalar_type() == at::kFloat && tensor.dim() == 1 && tensor.size(0) == b.size(1) &&
         tensor.is_contiguous() && !tensor.is_neg();
}

at::Tensor addmm(const at::Tensor& added, const at::Tensor& a, const at::Tensor& b,
                 const at::Scalar& beta, const at::Scalar& alpha) {
  const bool is_linear = fit(a, b) && is_bias(added, b) && beta.equal(1) && alpha.equal(1);
  return is_linear ? linear(a, b, added) : at::cpu::addmm(added, a, b, beta, alpha);
}

// The dispatcher warns of kernels that are replaced, which is what is wanted here.
class Quiet : public c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

}  // namespace

std::string_view onednn_problem() {
  if (!c10::Dispatcher::singleton().findSchema({kOperator, ""})) {
    return "this LibTorch has no oneDNN";
  }
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx512bw")) {
    return "oneDNN's products for CPUs without AVX-512 corrupt memory";
  }
#endif
  return {};
}

void replace_products(bool replace) {
  static std::optional<torch::Library> kernels;
  if (kernels.has_value() == replace) return;
  Quiet quiet;
  const c10::WarningUtils::WarningHandlerGuard guard(&quiet);
  if (!replace) return kernels.reset();
  kernels.emplace(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
  kernels->impl("mm", TORCH_FN(mm));
  kernels->impl("addmm", TORCH_FN(addmm));
}

}  // namespace phalanx::compute
