// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/stores/tcp_store.h"

#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/host/addresses.h"
#include "trainer/host/local_address.h"
#include "trainer/host/reachable.h"
#include "trainer/ranks/failures/call_within.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

constexpr auto kRouteInterval = std::chrono::milliseconds(100);
constexpr auto kPatience = std::chrono::milliseconds(1000);  // after c10d's own timeout

bool user_chose_log_level() { return std::getenv("TORCH_CPP_LOG_LEVEL") != nullptr; }

/// Hides what c10d prints beside the exceptions that it throws.
class QuietC10d {
 public:
  QuietC10d() {
    if (!user_chose_log_level()) FLAGS_caffe2_log_level = c10::GLOG_FATAL;
  }
  QuietC10d(const QuietC10d&) = delete;
  QuietC10d& operator=(const QuietC10d&) = delete;
  ~QuietC10d() { FLAGS_caffe2_log_level = before_; }

 private:
  int before_ = FLAGS_caffe2_log_level;
};

// After a wait in vain: c10d may have been held by the name, by the network or by what listens
// there. Its own words hold addresses that it has freed.
std::string why_no_store(const StorePlace& place) {
  std::string why = why_nobody_listens(place);
  return why.empty() ? "something listens there that does not answer as a store does" : why;
}

// Not about the place where it was to listen.
bool is_of_connection(const std::string& words) {
  return words.find("client socket") != std::string::npos;
}

// c10d connects with the store that it serves itself, at the address that the others are given.
// What it says where that fails may hold another address: where a host has no name, it reads the
// bytes of a pointer (formatSockAddr in c10d/socket.cpp).
[[noreturn]] void refuse_server(const StorePlace& place, const std::string& words) {
  if (!is_of_connection(words)) throw std::runtime_error(words);
  const std::string why = why_nobody_listens(place);
  throw UserError(fmt::format(
      "{} is '{}', where this host, which serves the ranks' store, does not reach itself: {}. Set "
      "it to the name or address of rank 0's host",
      place.setting, place.host, why.empty() ? "another host's program listens there" : why));
}

}  // namespace

void require_known_host(const StorePlace& place) {
  int error = 0;
  if (addresses_of(place.host, place.port, 0, error)) return;
  throw UserError(fmt::format(
      "{} is '{}', which this host does not know: {}. Set it to the name or address of rank 0's "
      "host",
      place.setting, place.host, ::gai_strerror(error)));
}

std::string why_nobody_listens(const StorePlace& place) {
  int error = 0;
  const Addresses found = addresses_of(place.host, place.port, 0, error);
  if (!found) return fmt::format("the name is not known: {}", ::gai_strerror(error));
  std::error_code why;
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    sockaddr_storage address{};
    std::memcpy(&address, each->ai_addr, each->ai_addrlen);
    why = try_to_connect(address);
    if (!why) return {};
  }
  return fmt::format("nothing listens there ({})", why.message());
}

std::string wait_for_route(const StorePlace& place, std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    std::string address = local_address_towards(place.host, place.port);
    if (!address.empty()) return address;
    if (std::chrono::steady_clock::now() >= end) {
      throw UserError(fmt::format(
          "{} is '{}', to which this host had no route in {} s: is it the address of rank 0's "
          "host, and is this host's network up?",
          place.setting, place.host, std::chrono::duration<double>(timeout).count()));
    }
    std::this_thread::sleep_for(kRouteInterval);
  }
}

c10::intrusive_ptr<c10d::Store> open_tcp_store(const StorePlace& place, const StoreServer& server,
                                               std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = place.port;
  options.isServer = server.is_here;
  options.waitWorkers = false;  // it would not say who is missing
  options.timeout = timeout;
  if (server.is_here) options.masterListenFd = server.listen_fd;
  const QuietC10d quiet;
  using Store = c10::intrusive_ptr<c10d::Store>;
  const std::function<Store()> open = [host = place.host, options]() -> Store {
    return c10::make_intrusive<c10d::TCPStore>(host, options);
  };
  if (server.is_here) {
    try {
      return open();
    } catch (const std::exception& error) {
      refuse_server(place, error_text(error));
    }
  }
  // c10d waits for ever for the first word of what it has connected to.
  try {
    if (auto store = call_within<Store>(timeout + kPatience, open)) return std::move(*store);
  } catch (const std::exception&) {
    // The reason below says more.
  }
  throw std::runtime_error(why_no_store(place));
}

void show_only_errors_of_c10d() {
  if (!user_chose_log_level()) FLAGS_caffe2_log_level = c10::GLOG_ERROR;
}

}  // namespace phalanx
