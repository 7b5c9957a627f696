// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/ranks.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

#include "trainer/ranks/collectives/process_group.h"
#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/failures/gloo_error.h"
#include "trainer/ranks/stores/key_value_store.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

using ProcessGroupPointer = c10::intrusive_ptr<c10d::ProcessGroup>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

c10d::ReduceOp to_c10d(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return c10d::ReduceOp::SUM;
    case Reduction::average:
      return c10d::ReduceOp::AVG;
    case Reduction::product:
      return c10d::ReduceOp::PRODUCT;
    case Reduction::minimum:
      return c10d::ReduceOp::MIN;
    case Reduction::maximum:
      return c10d::ReduceOp::MAX;
  }
  throw std::logic_error("an unknown Reduction");
}

const char* to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::average:
      return "average";
    case Reduction::product:
      return "product";
    case Reduction::minimum:
      return "minimum";
    case Reduction::maximum:
      return "maximum";
  }
  return "";
}

std::vector<at::Tensor> listed(const at::Tensor& tensor) { return {tensor}; }

at::Tensor bytes_of(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  return bytes;
}

at::Tensor number(int64_t value) {
  at::Tensor tensor = at::empty({1}, at::kLong);
  *tensor.mutable_data_ptr<int64_t>() = value;
  return tensor;
}

}  // namespace

Pending::Pending() = default;
Pending::Pending(std::function<void()> wait) : wait_(std::move(wait)) {}
Pending::Pending(Pending&&) noexcept = default;
Pending& Pending::operator=(Pending&&) noexcept = default;
Pending::~Pending() = default;

void Pending::wait() {
  if (auto wait = std::exchange(wait_, nullptr)) wait();
}

Ranks::Group::Group(std::shared_ptr<const GroupEnd> of_whole)
    : end(std::make_shared<GroupEnd>(std::move(of_whole))),
      key_value_store(std::make_shared<GroupStore>(end, make_local_store())) {}
Ranks::Group::~Group() = default;

void Ranks::Group::attach(c10::intrusive_ptr<c10d::Store> new_store,
                          MakeProcessGroup make_process_group) {
  store = std::move(new_store);
  make = std::move(make_process_group);
  const auto prefixed = [&](const char* what) {
    return c10::make_intrusive<c10d::PrefixStore>(fmt::format("{}/{}", name, what), store);
  };
  key_value_store = std::make_shared<GroupStore>(end, make_key_value_store(prefixed("texts")));
  if (world_size > 1) process_group = make(prefixed("group"), rank, world_size);
}

void Ranks::Group::detach() {
  end->reach();
  process_group.reset();
  key_value_store->release();
  store.reset();
}

void Ranks::Group::find_place_on_host() {
  const auto here = hosts.begin() + rank;
  local_rank = std::count(hosts.begin(), here, *here);
  local_world_size = std::count(hosts.begin(), hosts.end(), *here);
}

Ranks::Ranks() : group_(std::make_shared<Group>()) {}
Ranks::Ranks(std::shared_ptr<Group> group) : group_(std::move(group)) {}

int64_t Ranks::rank() const { return group_->rank; }
int64_t Ranks::world_size() const { return group_->world_size; }
int64_t Ranks::local_rank() const { return group_->local_rank; }
int64_t Ranks::local_world_size() const { return group_->local_world_size; }

const ProcessGroupPointer& process_group(const Ranks& ranks) {
  const Ranks::Group& group = ranks.group();
  group.end->require_open("process_group");
  if (!group.process_group) throw std::logic_error("a world of one has no process group");
  return group.process_group;
}

// The verb of every operation: starts it by `begin`, and gives errors of starting and of waiting
// their context.
template <class Begin>
Pending Ranks::start(std::string operation, Begin begin) const {
  auto fail = [group = group_, operation](const std::exception& error) {
    throw CommunicationError(fmt::format("{} of {} ranks failed in {}: {}", operation,
                                         group->world_size, *group->activity,
                                         plain_gloo_text(error_text(error))));
  };
  const ProcessGroupPointer& group = process_group(*this);
  WorkPointer work;
  try {
    work = begin(*group);
  } catch (const std::exception& error) {
    fail(error);
  }
  return Pending([work = std::move(work), fail = std::move(fail)] {
    try {
      work->wait();
    } catch (const std::exception& error) {
      fail(error);
    }
  });
}

Pending Ranks::start_all_reduce(const at::Tensor& tensor, Reduction reduction) const {
  group_->end->require_open("all-reduce");
  if (is_single_rank()) return {};
  return start(fmt::format("all-reduce ({} of {} elements)", to_string(reduction), tensor.numel()),
               [&](c10d::ProcessGroup& group) {
                 auto tensors = listed(tensor);
                 c10d::AllreduceOptions options;
                 options.reduceOp = to_c10d(reduction);
                 return group.allreduce(tensors, options);
               });
}

Pending Ranks::start_all_gather(const at::Tensor& output, const at::Tensor& input) const {
  group_->end->require_open("all-gather");
  if (is_single_rank()) {
    if (!output.is_same(input)) output.view(-1).copy_(input.view(-1));
    return {};
  }
  return start(fmt::format("all-gather (of {} elements)", input.numel()),
               [&](c10d::ProcessGroup& group) {
                 at::Tensor to = output.view({-1});
                 at::Tensor from = input.view({-1});
                 return group._allgather_base(to, from);
               });
}

Pending Ranks::start_reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                                    Reduction reduction) const {
  group_->end->require_open("reduce-scatter");
  if (is_single_rank()) {
    if (!output.is_same(input)) output.view(-1).copy_(input.view(-1));
    return {};
  }
  const std::string operation =
      fmt::format("reduce-scatter ({} of {} elements)", to_string(reduction), input.numel());
  const bool adds = reduction == Reduction::sum || reduction == Reduction::average;
  if (adds && input.is_cpu()) {
    // Gloo's own reduces everything everywhere, which sends each byte twice
    // (ProcessGroupGloo::_reduce_scatter_base); what the others have of this rank's part, sent
    // here and added up, is half of it.
    const at::Tensor parts = at::empty({world_size(), output.numel()}, input.options());
    Pending exchange = start(operation, [&](c10d::ProcessGroup& group) {
      at::Tensor to = parts.view({-1});
      at::Tensor from = input.view({-1});
      std::vector<int64_t> equal_parts;
      return group.alltoall_base(to, from, equal_parts, equal_parts);
    });
    auto shared = std::make_shared<Pending>(std::move(exchange));
    return Pending([shared, parts, output, input, reduction, ranks = world_size()] {
      shared->wait();
      at::Tensor sum = output.view({-1});
      at::sum_out(sum, parts, at::IntArrayRef{0}, /*keepdim=*/false, sum.scalar_type());
      if (reduction == Reduction::average) sum.div_(ranks);
    });
  }
  return start(operation, [&](c10d::ProcessGroup& group) {
    at::Tensor to = output.view({-1});
    at::Tensor from = input.view({-1});
    c10d::ReduceScatterOptions options;
    options.reduceOp = to_c10d(reduction);
    return group._reduce_scatter_base(to, from, options);
  });
}

Pending Ranks::start_broadcast(const at::Tensor& tensor, int64_t source) const {
  group_->end->require_open("broadcast");
  if (is_single_rank()) return {};
  return start(fmt::format("broadcast (of {} elements from rank {})", tensor.numel(), source),
               [&](c10d::ProcessGroup& group) {
                 auto tensors = listed(tensor);
                 c10d::BroadcastOptions options;
                 options.rootRank = source;
                 return group.broadcast(tensors, options);
               });
}

Pending Ranks::start_all_to_all(const at::Tensor& output, const at::Tensor& input) const {
  group_->end->require_open("all-to-all");
  if (is_single_rank()) {
    output.copy_(input);
    return {};
  }
  return start(fmt::format("all-to-all (of {} elements)", input.numel()),
               [&](c10d::ProcessGroup& group) {
                 at::Tensor to = output.view({-1});
                 at::Tensor from = input.view({-1});
                 std::vector<int64_t> equal_parts;
                 return group.alltoall_base(to, from, equal_parts, equal_parts);
               });
}

Pending Ranks::start_send(const at::Tensor& tensor, int64_t destination, int tag) const {
  group_->end->require_open("send");
  return start(fmt::format("send (of {} elements to rank {})", tensor.numel(), destination),
               [&](c10d::ProcessGroup& group) {
                 auto tensors = listed(tensor);
                 return group.send(tensors, static_cast<int>(destination), tag);
               });
}

Pending Ranks::start_receive(const at::Tensor& tensor, int64_t source, int tag) const {
  group_->end->require_open("receive");
  return start(fmt::format("receive (of {} elements from rank {})", tensor.numel(), source),
               [&](c10d::ProcessGroup& group) {
                 auto tensors = listed(tensor);
                 return group.recv(tensors, static_cast<int>(source), tag);
               });
}

void Ranks::all_reduce(const at::Tensor& tensor, Reduction reduction) const {
  start_all_reduce(tensor, reduction).wait();
}
void Ranks::all_gather(const at::Tensor& output, const at::Tensor& input) const {
  start_all_gather(output, input).wait();
}
void Ranks::reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                           Reduction reduction) const {
  start_reduce_scatter(output, input, reduction).wait();
}
void Ranks::broadcast(const at::Tensor& tensor, int64_t source) const {
  start_broadcast(tensor, source).wait();
}
void Ranks::all_to_all(const at::Tensor& output, const at::Tensor& input) const {
  start_all_to_all(output, input).wait();
}
void Ranks::send(const at::Tensor& tensor, int64_t destination, int tag) const {
  start_send(tensor, destination, tag).wait();
}
void Ranks::receive(const at::Tensor& tensor, int64_t source, int tag) const {
  start_receive(tensor, source, tag).wait();
}

void Ranks::barrier() const {
  group_->end->require_open("barrier");
  if (is_single_rank()) return;
  start("barrier", [](c10d::ProcessGroup& group) {
    c10d::BarrierOptions options;
    options.device = at::Device(at::kCPU);  // waits for the ranks, whatever their GPUs still do
    // ProcessGroup::barrier assigns to a static tensor (c10d/ProcessGroup.hpp): two threads, each
    // with a group of its own, would free it twice. Starting waits for nobody, so a lock may.
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    return group.barrier(options);
  }).wait();
}

std::string Ranks::broadcast(const std::string& text, int64_t source) const {
  group_->end->require_open("broadcast");
  if (is_single_rank()) return text;
  const at::Tensor size = number(static_cast<int64_t>(text.size()));
  broadcast(size, source);
  const auto bytes = static_cast<size_t>(*size.const_data_ptr<int64_t>());
  std::string result = text;
  result.resize(bytes);
  if (bytes == 0) return result;
  const at::Tensor content = bytes_of(result);
  broadcast(content, source);
  std::memcpy(result.data(), content.const_data_ptr(), bytes);
  return result;
}

std::vector<std::string> Ranks::all_gather(const std::string& text) const {
  group_->end->require_open("all-gather");
  if (is_single_rank()) return {text};
  const at::Tensor longest = number(static_cast<int64_t>(text.size()));
  all_reduce(longest, Reduction::maximum);
  // Each text in a place of equal size, its length in front.
  constexpr auto kLengthBytes = static_cast<int64_t>(sizeof(int64_t));
  const int64_t place = kLengthBytes + *longest.const_data_ptr<int64_t>();
  at::Tensor mine = at::empty({place}, at::kByte).zero_();
  const auto length = static_cast<int64_t>(text.size());
  std::memcpy(mine.mutable_data_ptr(), &length, sizeof(length));
  std::memcpy(static_cast<char*>(mine.mutable_data_ptr()) + kLengthBytes, text.data(), text.size());
  const at::Tensor all = at::empty({place * world_size()}, at::kByte);
  all_gather(all, mine);
  std::vector<std::string> texts;
  for (int64_t r = 0; r < world_size(); ++r) {
    const char* begin = static_cast<const char*>(all.const_data_ptr()) + r * place;
    int64_t size = 0;
    std::memcpy(&size, begin, sizeof(size));
    texts.emplace_back(begin + kLengthBytes, static_cast<size_t>(size));
  }
  return texts;
}

KeyValueStore& Ranks::store() const { return *group_->key_value_store; }
std::shared_ptr<KeyValueStore> Ranks::shared_store() const { return group_->key_value_store; }

std::optional<Ranks> Ranks::subgroup(std::span<const int64_t> members) const {
  group_->end->require_open("subgroup");
  const auto place = std::find(members.begin(), members.end(), rank());
  const int64_t number = group_->subgroups++;
  if (place == members.end()) return std::nullopt;
  auto group = std::make_shared<Group>(group_->end);
  group->rank = place - members.begin();
  group->world_size = static_cast<int64_t>(members.size());
  group->hosts.clear();
  for (const int64_t member : members) {
    group->hosts.push_back(group_->hosts.at(static_cast<std::size_t>(member)));
  }
  group->find_place_on_host();
  group->timeout = group_->timeout;
  group->name = fmt::format("{}/{}", group_->name, number);
  group->activity = group_->activity;
  if (!is_single_rank()) group->attach(group_->store, group_->make);
  Ranks ranks(std::move(group));
  // Who has connected may drop the group at once, which would end the connections that others still
  // make (so does torch.distributed: distributed_c10d.py, _store_based_barrier).
  ranks.barrier();
  return ranks;
}

Ranks Ranks::separate(std::string_view activity) const {
  group_->end->require_open("separate");
  std::vector<int64_t> all(static_cast<std::size_t>(world_size()));
  std::iota(all.begin(), all.end(), 0);
  Ranks ranks = *subgroup(all);
  // Not shared: what one thread sets the other may read.
  ranks.group_->activity = std::make_shared<std::string>(activity);
  return ranks;
}

void on_first_rank(const Ranks& ranks, const std::function<void()>& action) {
  if (ranks.is_single_rank()) return action();
  std::exception_ptr error;
  std::string failure;
  if (ranks.is_first()) {
    try {
      action();
    } catch (const std::exception& thrown) {
      error = std::current_exception();
      failure = fmt::format("rank 0 failed in {}: {}", ranks.activity(), error_text(thrown));
    }
  }
  failure = ranks.broadcast(failure);
  if (error) std::rethrow_exception(error);
  if (!failure.empty()) throw CommunicationError(failure);
}

std::chrono::milliseconds Ranks::timeout() const { return group_->timeout; }

void Ranks::set_activity(std::string_view activity) const { *group_->activity = activity; }
const std::string& Ranks::activity() const { return *group_->activity; }

void Ranks::close() const {
  try {
    if (group_->process_group) group_->process_group->shutdown();
  } catch (const std::exception&) {
    // A rank that is faster has closed its end already; after the barrier nothing is lost by it.
  }
  group_->detach();
}

void Ranks::abort() const {
  if (group_->process_group) group_->process_group->abort();
  group_->detach();
}

}  // namespace phalanx
