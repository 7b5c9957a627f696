// SPDX-License-Identifier: Apache-2.0
// Has threads of OpenMP that wait for each other sleep soon, unless the user has said how they
// wait. libgomp's own choice is to spin for milliseconds at each barrier; on cores that other
// programs need, too, a thread then burns the time that the one it waits for would need.
//
// libgomp reads its variable in its constructor, long before main(). What .preinit_array of an
// executable holds runs before all constructors, yet setenv() is lost there: glibc's own
// constructor takes over the array that the kernel has passed. So the variable goes into this
// array, or a new start of the program brings it along.
#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace {

char variable[] = "GOMP_SPINCOUNT=10000";

bool is_choice(std::string_view entry) {
  return entry.starts_with("GOMP_SPINCOUNT=") || entry.starts_with("OMP_WAIT_POLICY=");
}

// Where shells tell the path of the program: the array's one entry that nobody reads.
bool is_path_of_program(std::string_view entry) { return entry.starts_with("_="); }

// Returns where it cannot: the program goes on as it is.
void start_again(char** arguments, char** begin, char** end) {
  if (getauxval(AT_BASE) == 0) return;  // the loader was called with the program as its argument
  std::array<char, 4096> path{};
  if (readlink("/proc/self/exe", path.data(), path.size() - 1) <= 0) return;
  // Nothing is initialised yet, an allocator of the user's included.
  const size_t bytes = static_cast<size_t>(end - begin + 2) * sizeof(char*);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  char** environment = static_cast<char**>(memory);
  *std::copy(begin, end, environment) = variable;
  execve(path.data(), arguments, environment);
  munmap(memory, bytes);
}

void wait_briefly(int /*count*/, char** arguments, char** environment) {
  char** end = environment;
  while (*end != nullptr) ++end;
  if (std::any_of(environment, end, is_choice)) return;
  char** const place = std::find_if(environment, end, is_path_of_program);
  if (place != end) {
    *place = variable;
  } else {
    start_again(arguments, environment, end);
  }
}

[[gnu::section(".preinit_array"),
  gnu::used]] void (*const before_constructors)(int, char**, char**) = wait_briefly;

}  // namespace
