// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/transfers.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "trainer/ranks/collectives/start_operation.h"

namespace phalanx {

std::vector<Pending> start_transfers(const Ranks& ranks, const std::vector<Transfer>& transfers) {
  for (const Transfer& transfer : transfers) {
    require_rank(ranks, "transfer", transfer.peer);
    if (transfer.peer != ranks.rank()) continue;
    throw std::invalid_argument(
        fmt::format("transfer: rank {} is this rank itself", transfer.peer));
  }
  std::vector<Pending> pending;
  for (const Transfer& transfer : transfers) {
    pending.push_back(transfer.kind == Transfer::Kind::send
                          ? ranks.start_send(transfer.tensor, transfer.peer, transfer.tag)
                          : ranks.start_receive(transfer.tensor, transfer.peer, transfer.tag));
  }
  return pending;
}

int64_t receive_from_any(const Ranks& ranks, const at::Tensor& tensor, int tag) {
  const std::string backend = backend_name(ranks, tensor.device().type());
  if (backend != "gloo") {
    throw std::invalid_argument(fmt::format(
        "receive: {} has no receive from any rank; name the rank, or use a tensor in host memory",
        backend));
  }
  c10::intrusive_ptr<c10d::Work> work;
  start_operation(ranks, fmt::format("receive (of {} elements from any rank)", tensor.numel()),
                  [&](c10d::ProcessGroup& group) {
                    std::vector<at::Tensor> tensors{tensor};
                    work = group.recvAnysource(tensors, tag);
                    return work;
                  })
      .wait();
  return work->sourceRank();
}

}  // namespace phalanx
