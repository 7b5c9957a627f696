#include "trainer/core/batch.h"

namespace phalanx {

void move_to(Batch& batch, at::Device device) {
  for (at::Tensor* tensor : batch.tensors()) {
    *tensor = tensor->to(tensor->options().device(device), /*non_blocking=*/true);
  }
}

}  // namespace phalanx
