// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/transport.h"

#include <torch/csrc/distributed/rpc/tensorpipe_agent.h>

#include <memory>
#include <utility>

// TensorPipe's, in LibTorch's library (tensorpipe/transport/uv/factory.h): its headers are not
// among LibTorch's that are used here.
namespace tensorpipe::transport::uv {
std::shared_ptr<Context> create();
}

namespace phalanx::rpc {
namespace {

std::string& next_address() {
  static std::string address;
  return address;
}

}  // namespace

void listen_at(std::string address) { next_address() = std::move(address); }

}  // namespace phalanx::rpc

namespace torch::distributed::rpc {
namespace {

// LibTorch's own "uv" asks the name server for this host's address first.
std::unique_ptr<TransportRegistration> make_transport() {
  auto transport = std::make_unique<TransportRegistration>();
  transport->transport = tensorpipe::transport::uv::create();
  transport->priority = 0;
  transport->address = phalanx::rpc::next_address();
  return transport;
}

C10_REGISTER_CREATOR(TensorPipeTransportRegistry, phalanx, make_transport)

}  // namespace
}  // namespace torch::distributed::rpc
