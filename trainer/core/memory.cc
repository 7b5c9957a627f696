#include "trainer/core/memory.h"

#include <malloc.h>

namespace phalanx {

void keep_freed_memory() {
  // No block from mmap (a threshold would do, but glibc refuses one above 32 MiB), and no trimming
  // of the heap's end.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
}

}  // namespace phalanx
