// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/warm_start.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/load/mismatch.h"
#include "trainer/checkpoint/load/slice_reader.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

std::string renamed(const std::string& name, const std::map<std::string, std::string>& prefixes) {
  const std::pair<const std::string, std::string>* longest = nullptr;
  for (const auto& prefix : prefixes) {
    if (!name.starts_with(prefix.first)) continue;
    if (longest == nullptr || prefix.first.size() > longest->first.size()) longest = &prefix;
  }
  return longest == nullptr ? name : longest->second + name.substr(longest->first.size());
}

void append(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

void read_as(SliceReader& reader, const ManifestTensor& tensor, const ShardedTensorView& view) {
  if (tensor.dtype == view.dtype) return reader.read(tensor, view.part(), view.local);
  const at::Tensor there = tensors::empty(view.local.sizes(), tensor.dtype);
  reader.read(tensor, view.part(), there);
  view.local.copy_(there);
}

using TensorsByName = std::map<std::string_view, const ManifestTensor*>;

bool has_rows(const WarmStart& options, const std::string& name) {
  return options.rows && options.rows->tensors.contains(name);
}

// In the precision that they have there. Rows are read without progress: how much is not known.
uint64_t bytes_to_read(std::span<const ShardedTensorView> model, const TensorsByName& tensors,
                       const WarmStart& options) {
  uint64_t bytes = 0;
  for (const ShardedTensorView& view : model) {
    const auto tensor = tensors.find(view.name);
    if (tensor == tensors.end() || has_rows(options, view.name)) continue;
    bytes += static_cast<uint64_t>(view.end - view.begin) * c10::elementSize(tensor->second->dtype);
  }
  return bytes;
}

}  // namespace

void rename_tensors(Contents& contents, const std::map<std::string, std::string>& prefixes) {
  std::set<std::pair<std::string, std::string>> names;
  for (ManifestTensor& tensor : contents.tensors) {
    if (tensor.part == kRngPart) continue;
    std::string name = renamed(tensor.name, prefixes);
    if (!names.emplace(tensor.part, name).second) {
      throw UserError(
          fmt::format("two tensors come to have the name '{}', '{}' among them: choose "
                      "other prefixes",
                      name, tensor.name));
    }
    tensor.name = std::move(name);
  }
}

std::vector<std::string> require_start(const Contents& contents,
                                       const std::filesystem::path& source,
                                       std::span<const ShardedTensorView> model, bool strict) {
  const Mismatches found = find_mismatches(contents, kModelPart, model);
  std::vector<std::string> errors = strict ? found.missing : std::vector<std::string>();
  if (strict) append(errors, found.unexpected);
  append(errors, found.shapes);
  if (!errors.empty()) {
    throw UserError(fmt::format(
        "'{}' does not fit this model:\n  {}\n{}", source.string(), fmt::join(errors, "\n  "),
        found.shapes.empty() ? "map names with checkpoint.load_prefixes, or take what fits "
                               "with checkpoint.load_strict=false"
                             : "use the config of that model; where it is the vocabulary alone "
                               "that differs, checkpoint.load_vocabulary=by_token or by_id takes "
                               "its rows"));
  }
  std::vector<std::string> lines = found.missing;
  append(lines, found.unexpected);
  return lines;
}

std::vector<std::string> warm_start(const Checkpoint& checkpoint,
                                    std::span<const ShardedTensorView> model,
                                    const WarmStart& options, ByteProgress* progress) {
  Contents contents = checkpoint.manifest;
  rename_tensors(contents, options.prefixes);
  const Contents compared =
      options.rows ? with_rows(contents, options.rows->tensors, std::ssize(options.rows->source))
                   : contents;
  std::vector<std::string> lines = require_start(compared, checkpoint.path, model, options.strict);
  TensorsByName tensors;
  for (const ManifestTensor& tensor : contents.tensors) {
    if (tensor.part == kModelPart) tensors[tensor.name] = &tensor;
  }
  if (progress != nullptr) progress->begin(bytes_to_read(model, tensors, options));
  SliceReader reader(checkpoint.path, contents, progress);
  SliceReader of_rows(checkpoint.path, contents);
  std::size_t filled = 0;
  for (const ShardedTensorView& view : model) {
    const auto tensor = tensors.find(view.name);
    if (tensor == tensors.end()) continue;
    if (has_rows(options, view.name)) {
      read_rows(of_rows, *tensor->second, *options.rows, view);
    } else {
      read_as(reader, *tensor->second, view);
    }
    ++filled;
  }
  if (filled == 0) {
    throw UserError(
        fmt::format("'{}' has no tensor of this model: map names with "
                    "checkpoint.load_prefixes",
                    checkpoint.path.string()));
  }
  return lines;
}

}  // namespace phalanx
