// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace at {
class Tensor;
}

/// Which accesses of memory have an order: two operations that touch the same bytes, one of them
/// writing, must be ordered by a stream, an event or the host, and so must a block's accesses and
/// its freeing, and the first accesses after it was handed out again.
namespace phalanx::test_device {

enum class Access { reads, writes };

/// The newest operation of a stream touches memory. `op` stays where it is.
void note_access(uint32_t stream, const void* memory, std::size_t bytes, Access access,
                 std::string_view op);
/// The same of all that lies between a tensor's first and last element.
void note_access(uint32_t stream, const at::Tensor& tensor, Access access, std::string_view op);

/// Memory of a device is freed: the stream that it is of must come after all accesses by then, or
/// record_stream have named theirs. An allocator that hands it to another stream, as
/// cudaMallocAsync does, knows of no other order.
void note_free(const void* memory);

/// The host touches pinned memory.
void note_access_of_host(const at::Tensor& tensor, Access access, std::string_view op);

/// What had no order, a line each with both operators and streams, since the last call of this.
std::vector<std::string> take_races();

/// Looks at every operator of the CPU that touches pinned memory.
void install_host_watch();

}  // namespace phalanx::test_device
