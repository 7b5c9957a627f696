// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace phalanx {

/// Lets a test see what is refused: root may read and write everywhere, so while this lives this
/// thread keeps to the permissions of files as everybody does. The user stays the same: another one
/// could not even come to a folder below root's home.
class WithoutPrivileges {
 public:
  WithoutPrivileges() {
    if (::syscall(SYS_capget, &header_, own_) != 0) throw std::runtime_error("capget failed");
    __user_cap_data_struct fewer[_LINUX_CAPABILITY_U32S_3] = {own_[0], own_[1]};
    for (const unsigned capability : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}) {
      fewer[0].effective &= ~(1U << capability);
    }
    if (::syscall(SYS_capset, &header_, fewer) != 0) throw std::runtime_error("capset failed");
  }
  WithoutPrivileges(const WithoutPrivileges&) = delete;
  WithoutPrivileges& operator=(const WithoutPrivileges&) = delete;
  ~WithoutPrivileges() {
    if (::syscall(SYS_capset, &header_, own_) != 0) std::abort();
  }

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct own_[_LINUX_CAPABILITY_U32S_3]{};
};

}  // namespace phalanx
