// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/environment/init_method.h"

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <system_error>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

constexpr int64_t kLargestPort = 65535;
constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kFile = "file://";

/// A host and a port, as in `node0:29500` or `[::1]:29500`.
void take_address(std::string_view address, Environment& environment) {
  const std::size_t colon = address.rfind(':');
  std::string_view host = address.substr(0, colon);
  const std::string_view port =
      colon == std::string_view::npos ? std::string_view() : address.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  const bool is_port = error == std::errc() && end == port.data() + port.size() && number > 0 &&
                       number <= kLargestPort;
  if (host.empty() || !is_port) {
    throw UserError("init method tcp://" + std::string(address) +
                    ": expected a host and a port from 1 to 65535, as in tcp://node0:29500");
  }
  environment.master_addr = host;
  environment.master_port = static_cast<uint16_t>(number);
}

}  // namespace

Environment environment_at(std::string_view init_method, int64_t rank, int64_t world_size) {
  return environment_at(init_method, rank, world_size,
                        [](const char* name) { return std::getenv(name); });
}

Environment environment_at(std::string_view init_method, int64_t rank, int64_t world_size,
                           const VariableLookup& lookup) {
  if (world_size < 1 || rank < 0 || rank >= world_size) {
    throw UserError("rank " + std::to_string(rank) + " is outside of a world of " +
                    std::to_string(world_size) + ": ranks are counted from 0");
  }
  Environment environment{.rank = rank, .world_size = world_size};
  if (world_size > 1) environment.local_rank = environment.local_world_size = kFromHosts;
  if (init_method == "env://") {
    const Variables variables(lookup);
    environment.master_addr = variables.required("MASTER_ADDR");
    environment.master_port =
        static_cast<uint16_t>(variables.number("MASTER_PORT", 1, kLargestPort));
  } else if (init_method.starts_with(kTcp)) {
    take_address(init_method.substr(kTcp.size()), environment);
  } else if (init_method.starts_with(kFile)) {
    environment.master_addr = init_method;
    const std::string file = store_file(environment);
    if (!file.starts_with('/') || file.ends_with('/')) {
      throw UserError("init method " + std::string(init_method) +
                      ": expected an absolute path of a file, as in file:///shared/meeting");
    }
  } else {
    throw UserError("unknown init method '" + std::string(init_method) +
                    "'; there are: tcp://HOST:PORT, env:// and file:///PATH");
  }
  return environment;
}

std::string store_file(const Environment& environment) {
  const std::string_view place = environment.master_addr;
  return std::string(place.starts_with(kFile) ? place.substr(kFile.size()) : "");
}

}  // namespace phalanx
