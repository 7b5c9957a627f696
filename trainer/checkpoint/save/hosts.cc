// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/hosts.h"

#include <map>

#include "trainer/ranks/ranks.h"

namespace phalanx {

std::vector<int64_t> exchange_hosts(const Ranks& ranks, const std::string& host) {
  std::map<std::string, int64_t> numbers;
  std::vector<int64_t> hosts;
  for (const std::string& name : ranks.all_gather(host)) {
    hosts.push_back(numbers.try_emplace(name, static_cast<int64_t>(numbers.size())).first->second);
  }
  return hosts;
}

}  // namespace phalanx
