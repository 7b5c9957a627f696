// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/environment/launch_job.h"

#include <cstdlib>
#include <string_view>

namespace phalanx {
namespace {

// "3f2a90c4 at localhost:29400 on host-0"
bool meets_on_loopback(std::string_view job) {
  constexpr std::string_view kMark = " at ";
  const size_t mark = job.find(kMark);
  if (mark == std::string_view::npos) return false;
  const std::string_view place = job.substr(mark + kMark.size());
  return place.starts_with("localhost:") || place.starts_with("127.") || place.starts_with("::1:");
}

}  // namespace

std::string launch_job() {
  const char* job = std::getenv(kLaunchJobVariable);
  return job == nullptr ? "" : job;
}

bool met_only_themselves(const std::string& job, const std::string& other) {
  return job != other && meets_on_loopback(job) && meets_on_loopback(other);
}

}  // namespace phalanx
