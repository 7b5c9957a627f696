// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/trained_adapters.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <utility>

#include "trainer/api/adapters.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/fingerprint.h"
#include "trainer/checkpoint/load/slice_reader.h"
#include "trainer/checkpoint/load/sources.h"
#include "trainer/cli/command.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"
#include "trainer/hugging_face/model_section.h"
#include "trainer/mixins/adapter_base.h"
#include "trainer/mixins/checkpoint_config.h"
#include "trainer/mixins/first_weights.h"
#include "trainer/ranks/ranks.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// A section as it was saved.
template <class Config>
Config section_of(const config::Node& run, const char* key) {
  const config::Node* section = run.find(key);
  config::Diagnostics diagnostics;
  config::Node resolved =
      config::resolve(config::declaration<Config>(),
                      section == nullptr ? config::Node::map() : *section, diagnostics);
  diagnostics.throw_if_any();
  return config::read<Config>(resolved);
}

class Matrices {
 public:
  explicit Matrices(const Checkpoint& checkpoint) : reader_(checkpoint.path, checkpoint.manifest) {
    for (const ManifestTensor& tensor : checkpoint.manifest.tensors) {
      if (tensor.part == kModelPart) tensors_[tensor.name] = &tensor;
    }
  }

  at::Tensor read(const std::string& name) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      throw UserError(
          fmt::format("the checkpoint has no tensor '{}', which its config asks for", name));
    }
    const at::Tensor values = tensors::empty(found->second->shape, found->second->dtype);
    reader_.read(*found->second, 0, values.view(-1));
    return values;
  }

 private:
  SliceReader reader_;
  std::map<std::string, const ManifestTensor*> tensors_;
};

}  // namespace

at::Tensor AdapterMatrices::merged(double scale, int64_t begin, const at::Tensor& values) const {
  const auto dtype = values.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor left = (is_inputs_first ? a.t() : b).to(dtype);
  const at::Tensor right = (is_inputs_first ? b.t() : a).to(dtype);
  const int64_t width = right.size(1);
  const int64_t first = begin / width;
  const int64_t rows = (begin + values.numel() - 1) / width - first + 1;
  const at::Tensor change = left.narrow(0, first, rows)
                                .matmul(right)
                                .mul(scale)
                                .reshape({-1})
                                .narrow(0, begin - first * width, values.numel());
  return values.to(dtype).add(change);
}

bool holds_adapters(const Checkpoint& checkpoint) { return !checkpoint.manifest.base.empty(); }

TrainedAdapters adapters_in(const Checkpoint& checkpoint, const config::Node& run,
                            const config::Node& model) {
  TrainedAdapters adapters{.config = section_of<LoraConfig>(run, "lora"), .by_module = {}};
  const ModelWithoutValues made = model_without_values(model);
  adapters.config.adapt(*made.model);
  Matrices matrices(checkpoint);
  for (const NamedAdaptable& each : adaptable_modules(*made.model)) {
    if (!each.module->has_adapter()) continue;
    adapters.by_module[each.name] = {.a = matrices.read(each.name + ".lora_A.weight"),
                                     .b = matrices.read(each.name + ".lora_B.weight"),
                                     .is_inputs_first = each.module->is_inputs_first()};
  }
  return adapters;
}

fs::path base_path(const config::Node& run, const Invocation& invocation) {
  if (const auto given = invocation.value("--base")) return std::string(*given);
  return section_of<CheckpointConfig>(run, "checkpoint").load_from.value_or(fs::path());
}

Checkpoint base_of(const Checkpoint& checkpoint, const config::Node& run,
                   const Invocation& invocation) {
  CheckpointConfig weights = section_of<CheckpointConfig>(run, "checkpoint");
  weights.load_from = base_path(run, invocation);
  std::error_code unknown;
  if (!fs::exists(*weights.load_from, unknown)) {
    throw UserError(
        fmt::format("'{}' holds adapters, and the model that they were trained beside "
                    "is not at '{}': say by --base where it is",
                    checkpoint.path.string(), weights.load_from->string()));
  }
  const Checkpoint base =
      named_as_ours(open_source(sources_at(*weights.load_from).front()), weights, run);
  AdapterBase(*weights.load_from, fingerprint_of(base, Ranks()), /*notes=*/{})
      .require_that_of(checkpoint);
  return base;
}

}  // namespace phalanx
