// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <utility>
#include <vector>

#include "tests/test_device/failure.h"
#include "tests/test_device/streams.h"

namespace phalanx::test_device {
namespace {

class Generator final : public c10::GeneratorImpl {
 public:
  Generator(c10::Device device, at::Generator cpus)
      : GeneratorImpl(device, c10::DispatchKeySet(kKey)), cpus_(std::move(cpus)) {}

  void set_current_seed(uint64_t seed) override { cpus_.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { cpus_.set_offset(offset); }
  uint64_t get_offset() const override { return cpus_.get_offset(); }
  uint64_t current_seed() const override { return cpus_.current_seed(); }
  uint64_t seed() override { return cpus_.seed(); }
  void set_state(const c10::TensorImpl& state) override {
    require_answer();
    cpus_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return cpus_.unsafeGetGeneratorImpl()->get_state();
  }
  const at::Generator& cpus() const { return cpus_; }

 private:
  Generator* clone_impl() const override { return new Generator(device_, cpus_.clone()); }

  at::Generator cpus_;
};

}  // namespace

at::Generator make_generator(int index) {
  return at::make_generator<Generator>(device(index), at::detail::createCPUGenerator());
}

const at::Generator& default_generator(int index) {
  static const std::vector<at::Generator> generators = [] {
    std::vector<at::Generator> made;
    for (int i = 0; i < kDevices; ++i) made.push_back(make_generator(i));
    return made;
  }();
  return generators.at(static_cast<std::size_t>(index));
}

at::Generator cpu_generator_of(const at::Generator& generator) {
  return static_cast<Generator*>(generator.unsafeGetGeneratorImpl())->cpus();
}

SwappedGenerators::SwappedGenerators(int device)
    : ours_(cpu_generator_of(default_generator(device))),
      cpus_(at::globalContext().defaultGenerator(at::kCPU)),
      state_of_cpus_(cpus_.unsafeGetGeneratorImpl()->get_state()) {
  cpus_.unsafeGetGeneratorImpl()->set_state(*ours_.unsafeGetGeneratorImpl()->get_state());
}

SwappedGenerators::~SwappedGenerators() {
  ours_.unsafeGetGeneratorImpl()->set_state(*cpus_.unsafeGetGeneratorImpl()->get_state());
  cpus_.unsafeGetGeneratorImpl()->set_state(*state_of_cpus_);
}

}  // namespace phalanx::test_device
