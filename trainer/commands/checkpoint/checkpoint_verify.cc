// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/checkpoint/load/verify.h"
#include "trainer/cli/command.h"
#include "trainer/commands/checkpoint/checkpoint_paths.h"
#include "trainer/commands/positionals.h"
#include "trainer/io/byte_progress.h"
#include "trainer/io/bytes_text.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/progress_line.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// Says how it is; false where it is damaged.
bool verify(const fs::path& path) {
  const std::string name = path.filename().string();
  const auto start = std::chrono::steady_clock::now();
  try {
    ByteProgress progress;
    Checkpoint verified;
    Console console(STDERR_FILENO);
    with_progress(console, "verifying " + name, progress,
                  [&] { verified = verify_checkpoint(path, &progress); });
    const auto files = listed_files(verified.manifest);
    uint64_t bytes = 0;
    for (const auto& [file, description] : files) bytes += description.size;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    fmt::print("{}: whole, {} in {} files read in {:.1f} s\n", name, bytes_text(bytes),
               files.size(), seconds.count());
    return true;
  } catch (const std::exception& error) {
    fmt::print("{}: damaged: {}\n", name, error.what());
    return false;
  }
}

int run(const Invocation& invocation) {
  int damaged = 0;
  for (const fs::path& path : checkpoints_at(invocation.arguments.front())) {
    damaged += verify(path) ? 0 : 1;
  }
  return damaged == 0 ? 0 : 1;
}

}  // namespace

Command checkpoint_verify_command() {
  return {
      .name = "verify",
      .summary = "read every byte and compare it with its checksum",
      .help = "Exits with 1 if a checkpoint is damaged.",
      .examples = {"checkpoint verify runs/quickstart/run_0"},
      .positionals = {kCheckpoints},
      .run = run,
  };
}

}  // namespace phalanx
