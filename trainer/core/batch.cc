#include "trainer/core/batch.h"

namespace phalanx {

void move_to(Batch& batch, at::Device device) {
  for (at::Tensor* tensor : batch.tensors()) {
    if (tensor->defined()) *tensor = tensor->to(device);
  }
}

}  // namespace phalanx
