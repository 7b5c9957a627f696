// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/div.h>

#include <torch/csrc/distributed/c10d/comm.hpp>

#include "trainer/config/tree/no_fields.h"
#include "trainer/parallel/ddp/comm_hook.h"
#include "trainer/ranks/collectives/process_group.h"

namespace phalanx {
namespace {

using ProcessGroupPointer = c10::intrusive_ptr<c10d::ProcessGroup>;

// Sends the mean's summands in fewer bits: half the bytes, and their precision.
class Compress final : public c10d::CppCommHookInterface<ProcessGroupPointer> {
 public:
  Compress(const ProcessGroupPointer& group, at::ScalarType dtype)
      : CppCommHookInterface(group), dtype_(dtype) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    std::vector<at::Tensor> compressed{bucket.getBuffer().to(dtype_).div_(state_->getSize())};
    auto reduced = state_->allreduce(compressed)->getFuture();
    return reduced->then(
        [buffer = bucket.getBuffer()](c10::ivalue::Future& future) -> c10::IValue {
          const at::Tensor sum = c10d::detail::parseCppCommHookResult(future.value());
          return buffer.copy_(sum);
        },
        c10::TensorType::get());
  }

 private:
  at::ScalarType dtype_;
};

/// default_hooks.fp16_compress_hook and bf16_compress_hook.
template <at::ScalarType kType>
class Compressed : public CommHook {
 public:
  using Config = config::NoFields;
  explicit Compressed(Config) {}

  std::unique_ptr<c10d::CommHookInterface> make(const Ranks& ranks) override {
    return std::make_unique<Compress>(process_group(ranks), kType);
  }
};

REGISTER_COMM_HOOK("fp16_compress", Compressed<at::kHalf>);
REGISTER_COMM_HOOK("bf16_compress", Compressed<at::kBFloat16>);

}  // namespace
}  // namespace phalanx
