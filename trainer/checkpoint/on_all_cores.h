// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace phalanx {

/// Does the piece of work of that number.
using Work = std::function<void(std::size_t number)>;

/// Does so many pieces of work, numbered from 0, on all cores that this process may use: each of
/// the threads does one after another by tools of its own, which `make_worker` gives it. After the
/// first that fails no other begins; throws what that one threw.
void on_all_cores(std::size_t count, const std::function<Work()>& make_worker);

}  // namespace phalanx
