// SPDX-License-Identifier: Apache-2.0
#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/base/unsigned_nan.h"
#include "trainer/checkpoint/format/manifest_rules.h"
#include "trainer/checkpoint/format/safetensors_header.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/load/slice_reader.h"
#include "trainer/cli/columns.h"
#include "trainer/cli/command.h"
#include "trainer/commands/checkpoint/checkpoint_paths.h"
#include "trainer/commands/counted.h"
#include "trainer/io/byte_progress.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/progress_line.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

using Key = std::pair<std::string, std::string>;  // part and name
using Tensors = std::map<Key, const ManifestTensor*>;

Tensors tensors_of(const Manifest& manifest) {
  Tensors tensors;
  for (const ManifestTensor& tensor : manifest.tensors) {
    tensors[{tensor.part, tensor.name}] = &tensor;
  }
  return tensors;
}

std::string kind_of(const ManifestTensor& tensor) {
  return fmt::format("{} [{}]", safetensors_dtype_name(tensor.dtype),
                     fmt::join(tensor.shape, ", "));
}

uint64_t bytes_of(const ManifestTensor& tensor) {
  return static_cast<uint64_t>(elements_of(tensor)) * c10::elementSize(tensor.dtype);
}

at::Tensor read(SliceReader& reader, const ManifestTensor& tensor) {
  at::Tensor values = tensors::empty({elements_of(tensor)}, tensor.dtype);
  reader.read(tensor, 0, values);
  return values;
}

std::string short_number(double value) { return fmt::format("{:.3g}", unsigned_nan(value)); }

/// How the values of two tensors of one kind differ; nothing where they are the same bits.
std::optional<std::vector<std::string>> difference(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor left = a.view(at::kByte);
  const at::Tensor right = b.view(at::kByte);
  if (left.equal(right)) return std::nullopt;
  const at::Tensor wide_a = a.to(at::kDouble);
  const at::Tensor wide_b = b.to(at::kDouble);
  const at::Tensor gap = wide_b.sub(wide_a);
  const auto differing = wide_a.ne(wide_b).sum().item<int64_t>();
  const double norm = wide_a.norm().item<double>();
  return std::vector<std::string>{std::to_string(differing),
                                  short_number(gap.abs().max().item<double>()),
                                  norm > 0 ? short_number(gap.norm().item<double>() / norm) : "-"};
}

/// Compares two checkpoints, and holds no more of them than two tensors.
class Comparison {
 public:
  Comparison(const Checkpoint& a, const Checkpoint& b)
      : a_(tensors_of(a.manifest)),
        b_(tensors_of(b.manifest)),
        read_a_(a.path, a.manifest, &progress_),
        read_b_(b.path, b.manifest, &progress_) {
    uint64_t bytes = 0;
    for (const auto& [key, tensor] : a_) {
      if (is_comparable(*tensor, b_.find(key))) bytes += 2 * bytes_of(*tensor);
    }
    progress_.begin(bytes);
  }

  const ByteProgress& progress() const { return progress_; }

  void run() {
    for (const auto& [key, tensor] : a_) {
      const auto other = b_.find(key);
      if (other == b_.end()) {
        add(key, {"only in A"});
      } else if (!is_comparable(*tensor, other)) {
        add(key, {fmt::format("{} | {}", kind_of(*tensor), kind_of(*other->second))});
      } else {
        ++compared_;
        auto cells = difference(read(read_a_, *tensor), read(read_b_, *other->second));
        if (cells) {
          add(key, std::move(*cells));
        } else {
          ++same_;
        }
      }
    }
    for (const auto& [key, tensor] : b_) {
      if (!a_.contains(key)) add(key, {"only in B"});
    }
  }

  void print() const {
    if (rows_.size() > 1) fmt::print("{}\n", table(rows_));
    const int64_t differing = std::ssize(rows_) - 1;
    fmt::print("{} differ{}, {} {} the same bit for bit\n", counted(differing, "tensor"),
               differing == 1 ? "s" : "", same_, same_ == 1 ? "is" : "are");
    if (compared_ > 0) return;
    fmt::print(
        "no tensor has one name, type and shape in both, so no values were compared: the models or "
        "their precisions differ (`trainer checkpoint inspect A --config` prints A's)\n");
  }

 private:
  bool is_comparable(const ManifestTensor& tensor, Tensors::const_iterator other) const {
    return other != b_.end() && kind_of(tensor) == kind_of(*other->second);
  }

  void add(const Key& key, std::vector<std::string> cells) {
    std::vector<std::string> row{key.first, key.second};
    row.insert(row.end(), cells.begin(), cells.end());
    rows_.push_back(std::move(row));
  }

  Tensors a_;
  Tensors b_;
  ByteProgress progress_;
  SliceReader read_a_;
  SliceReader read_b_;
  std::vector<std::vector<std::string>> rows_{
      {"part", "tensor", "elements that differ", "largest difference", "norm of B - A over A's"}};
  int64_t compared_ = 0;
  int64_t same_ = 0;
};

std::string state_line(const Checkpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest;
  return fmt::format("{}: step {}, {}, {}", checkpoint.path.string(), manifest.state.step,
                     counted(manifest.state.samples, "sample"),
                     counted(manifest.world_size, "rank"));
}

// Nothing can differ; a run named twice is its newest both times.
void warn_of_same(const Checkpoint& a, const Checkpoint& b) {
  std::error_code unknown;
  if (!std::filesystem::equivalent(a.path, b.path, unknown)) return;
  fmt::print(stderr,
             "warning: A and B are one checkpoint, '{}': of a run the newest is taken; RUN@STEP "
             "names another one of it (`trainer checkpoint list RUN` lists them)\n",
             a.path.string());
}

void print_attachments(const Manifest& a, const Manifest& b) {
  for (const auto& [name, file] : a.attachments) {
    const auto other = b.attachments.find(name);
    if (other == b.attachments.end()) {
      fmt::print("attachment {}: only in A\n", name);
    } else if (file.size != other->second.size ||
               file.head_checksum != other->second.head_checksum) {
      fmt::print("attachment {}: differs\n", name);
    }
  }
  for (const auto& [name, file] : b.attachments) {
    if (!a.attachments.contains(name)) fmt::print("attachment {}: only in B\n", name);
  }
}

void print_parts(const Manifest& a, const Manifest& b) {
  for (const auto& [name, json] : a.parts) {
    const auto other = b.parts.find(name);
    if (other == b.parts.end()) {
      fmt::print("values of {}: only in A\n", name);
    } else if (json != other->second) {
      fmt::print("values of {}: {} | {}\n", name, json, other->second);
    }
  }
  for (const auto& [name, json] : b.parts) {
    if (!a.parts.contains(name)) fmt::print("values of {}: only in B\n", name);
  }
}

int run(const Invocation& invocation) {
  const Checkpoint a = open_checkpoint(checkpoint_at(invocation.arguments[0]));
  const Checkpoint b = open_checkpoint(checkpoint_at(invocation.arguments[1]));
  warn_of_same(a, b);
  fmt::print("A: {}\nB: {}\n\n", state_line(a), state_line(b));
  Comparison comparison(a, b);
  Console console(STDERR_FILENO);
  with_progress(console, "comparing", comparison.progress(), [&] { comparison.run(); });
  comparison.print();
  print_parts(a.manifest, b.manifest);
  print_attachments(a.manifest, b.manifest);
  return 0;
}

}  // namespace

Command checkpoint_diff_command() {
  return {
      .name = "diff",
      .summary = "which tensors differ between two checkpoints, and how much",
      .help = "A and B are checkpoints, or runs: of a run the newest is compared.",
      .examples = {"checkpoint diff runs/my/run_0 runs/my/run_1"},
      .positionals = {{"A", Positional::Takes::run}, {"B", Positional::Takes::run}},
      .run = run,
  };
}

}  // namespace phalanx
