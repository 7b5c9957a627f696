// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// A Batch that derives from this as well stays in (pinned) host memory until its loss is computed:
/// who computes it brings each tensor to the device that needs it. Others are copied to the model's
/// device before.
class LeftOnHost {
 public:
  virtual ~LeftOnHost() = default;
};

}  // namespace phalanx
