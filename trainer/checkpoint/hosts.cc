#include "trainer/checkpoint/hosts.h"

#include <limits.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <map>

namespace phalanx {

std::string this_host() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  ::gethostname(name.data(), name.size() - 1);
  // Hosts that were installed from one image may have the same name.
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return std::string(name.data()) + ' ' + boot;
}

std::vector<int64_t> exchange_hosts(const Ranks& ranks, const std::string& host) {
  std::map<std::string, int64_t> numbers;
  std::vector<int64_t> hosts;
  for (const std::string& name : ranks.all_gather(host)) {
    hosts.push_back(numbers.try_emplace(name, static_cast<int64_t>(numbers.size())).first->second);
  }
  return hosts;
}

}  // namespace phalanx
