// SPDX-License-Identifier: Apache-2.0
// One of our ranks in a group with Python's (collectives_peer.py). Arguments: the store's port,
// this rank, the world size, and who serves the store: "here" or "there". Prints {operation:
// values}.

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "trainer/parallel/ranks_of_store.h"
#include "trainer/ranks/collectives/coalesced.h"
#include "trainer/ranks/collectives/monitored_barrier.h"
#include "trainer/ranks/collectives/one_rank.h"
#include "trainer/ranks/collectives/transfers.h"
#include "trainer/ranks/collectives/uneven_all_to_all.h"
#include "trainer/ranks/stores/tcp_store.h"

namespace phalanx {
namespace {

constexpr auto kTimeout = std::chrono::seconds(60);

class Probe {
 public:
  explicit Probe(Ranks ranks) : ranks_(std::move(ranks)) {}

  // In the order of collectives_peer.py.
  nlohmann::json run() {
    reductions();
    from_and_to_one();
    gathers();
    exchanges();
    transfers();
    of_nothing();
    ranks_.barrier();
    monitored_barrier(ranks_, kTimeout);
    return std::move(results_);
  }

 private:
  void note(const std::string& name, const at::Tensor& tensor) {
    const at::Tensor values = tensor.to(at::kDouble).contiguous();
    const auto* const first = values.const_data_ptr<double>();
    results_[name] = std::vector<double>(first, first + values.numel());
  }

  // [rank + 1, 2 * (rank + 1)]
  at::Tensor own(at::ScalarType dtype) const {
    return at::tensor({rank_ + 1, 2 * (rank_ + 1)}).to(dtype);
  }

  void reductions() {
    using Named = std::pair<const char*, Reduction>;
    for (const auto& [name, reduction] :
         {Named{"sum", Reduction::sum}, Named{"avg", Reduction::average},
          Named{"product", Reduction::product}, Named{"min", Reduction::minimum},
          Named{"max", Reduction::maximum}, Named{"band", Reduction::bitwise_and},
          Named{"bor", Reduction::bitwise_or}, Named{"bxor", Reduction::bitwise_xor}}) {
      const bool of_bits = name[0] == 'b';
      const at::Tensor values = own(of_bits ? at::kLong : at::kDouble);
      ranks_.all_reduce(values, reduction);
      note(std::string("all_reduce ") + name, values);
    }
    for (const auto dtype :
         {at::kFloat, at::kHalf, at::kBFloat16, at::kInt, at::kByte, at::kChar}) {
      const at::Tensor values = own(dtype);
      ranks_.all_reduce(values);
      note(std::string("all_reduce of ") + c10::toString(dtype), values);
    }
    const at::Tensor nothing = at::empty({0});
    ranks_.all_reduce(nothing);
    note("all_reduce of nothing", nothing);
    const std::vector<at::Tensor> two{own(at::kDouble), at::full({3}, rank_, at::kDouble)};
    all_reduce_coalesced(ranks_, two);
    note("coalesced 0", two[0]);
    note("coalesced 1", two[1]);
  }

  void from_and_to_one() {
    const at::Tensor word = own(at::kDouble);
    ranks_.broadcast(word, 1);
    note("broadcast from ours", word);
    const at::Tensor other = own(at::kDouble);
    ranks_.broadcast(other, 2);
    note("broadcast from theirs", other);
    for (const int64_t destination : {1, 2}) {
      const at::Tensor sum = own(at::kDouble);
      reduce(ranks_, sum, destination, Reduction::maximum);
      if (rank_ == destination) note("reduce", sum);
    }
    for (const int64_t destination : {1, 2}) {
      const at::Tensor all = rank_ == destination ? at::empty({8}, at::kDouble) : at::Tensor();
      gather(ranks_, all, own(at::kDouble), destination);
      if (rank_ == destination) note("gather", all);
    }
    for (const int64_t source : {1, 2}) {
      const at::Tensor part = at::empty({2}, at::kDouble);
      const at::Tensor all = rank_ == source ? at::arange(8, at::kDouble) : at::Tensor();
      scatter(ranks_, part, all, source);
      note("scatter from " + std::to_string(source), part);
    }
  }

  void gathers() {
    const at::Tensor all = at::empty({8}, at::kDouble);
    ranks_.all_gather(all, own(at::kDouble));
    note("all_gather", all);
    for (const auto& [name, reduction] :
         {std::pair("sum", Reduction::sum), std::pair("max", Reduction::maximum)}) {
      const at::Tensor part = at::empty({2}, at::kDouble);
      ranks_.reduce_scatter(part, at::arange(8, at::kDouble).add(rank_), reduction);
      note(std::string("reduce_scatter ") + name, part);
    }
  }

  void exchanges() {
    const at::Tensor even = at::empty({4}, at::kDouble);
    ranks_.all_to_all(even, at::arange(4, at::kDouble).add(10 * rank_));
    note("all_to_all", even);
    // Rank r sends rank k k rows, and rank 0 nothing.
    const at::Tensor uneven = at::empty({4 * rank_, 2}, at::kDouble);
    uneven_all_to_all(ranks_, uneven, at::arange(12, at::kDouble).add(100 * rank_).view({6, 2}),
                      std::vector<int64_t>(4, rank_), {0, 1, 2, 3});
    note("uneven all_to_all", uneven);
  }

  void transfers() {
    const at::Tensor from_left = at::empty({2}, at::kDouble);
    auto pending =
        start_transfers(ranks_, {{Transfer::Kind::send, own(at::kDouble), (rank_ + 1) % 4, 5},
                                 {Transfer::Kind::receive, from_left, (rank_ + 3) % 4, 5}});
    for (Pending& each : pending) each.wait();
    note("ring", from_left);
    if (rank_ == 1) {
      const at::Tensor received = at::empty({2}, at::kDouble);
      results_["any source"] = receive_from_any(ranks_, received, 7);
      note("any", received);
    } else {
      ranks_.send(own(at::kDouble), 2, 8);
    }
  }

  void of_nothing() {
    const at::Tensor nothing = at::empty({0});
    ranks_.broadcast(nothing, 2);
    reduce(ranks_, nothing, 1);
    ranks_.all_gather(at::empty({0}), nothing);
    ranks_.all_to_all(at::empty({0}), nothing);
    note("nothing", nothing);
  }

  Ranks ranks_;
  int64_t rank_ = ranks_.rank();
  nlohmann::json results_;
};

int probe(char** arguments) {
  const StorePlace place{.host = "127.0.0.1",
                         .port = static_cast<uint16_t>(std::atoi(arguments[1])),
                         .setting = "the store's host"};
  const int64_t rank = std::atoll(arguments[2]);
  const StoreServer server{.is_here = std::string(arguments[4]) == "here"};
  const auto store = open_tcp_store(place, server, kTimeout);
  Ranks ranks = ranks_of_store(store, rank, std::atoll(arguments[3]), kTimeout);
  std::printf("%s\n", Probe(ranks).run().dump().c_str());
  ranks.close();
  // Who serves the store leaves last.
  store->set("done/" + std::to_string(rank), "");
  if (server.is_here) store->wait({"done/0", "done/1", "done/2", "done/3"}, kTimeout);
  return 0;
}

}  // namespace
}  // namespace phalanx

int main(int count, char** arguments) {
  try {
    return count == 5 ? phalanx::probe(arguments) : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
