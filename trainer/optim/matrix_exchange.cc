// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/matrix_exchange.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/ranks/collectives/uneven_all_to_all.h"

namespace phalanx {
namespace {

// The least busy rank; of several that one with the lowest number.
int64_t least_busy(const std::vector<double>& work) {
  return std::min_element(work.begin(), work.end()) - work.begin();
}

// In proportion to the multiplications of an iteration.
double work_of(int64_t rows, int64_t columns) {
  return static_cast<double>(rows) * static_cast<double>(columns) *
         static_cast<double>(std::min(rows, columns));
}

at::Tensor joined(const std::vector<at::Tensor>& parts, const at::TensorOptions& options) {
  return parts.empty() ? at::empty({0}, options) : at::cat(parts);
}

/// Hands out a flat tensor piece by piece.
class Cutter {
 public:
  explicit Cutter(at::Tensor flat) : flat_(std::move(flat)) {}

  at::Tensor next(int64_t size) { return flat_.narrow(0, std::exchange(at_, at_ + size), size); }

 private:
  at::Tensor flat_;
  int64_t at_ = 0;
};

/// What this rank sends and gets, in elements for each rank.
struct Parts {
  explicit Parts(int64_t ranks)
      : sent(static_cast<std::size_t>(ranks)), received(static_cast<std::size_t>(ranks)) {}

  std::vector<int64_t> sent;
  std::vector<int64_t> received;

  at::Tensor exchange(const Ranks& ranks, const std::vector<at::Tensor>& pieces,
                      const at::TensorOptions& options) const {
    const int64_t size = std::accumulate(received.begin(), received.end(), int64_t{0});
    at::Tensor output = at::empty({size}, options);
    uneven_all_to_all(ranks, output, joined(pieces, options), received, sent);
    return output;
  }
};

}  // namespace

MatrixExchange::MatrixExchange(Ranks ranks, const std::vector<NamedParameter>& matrices,
                               int64_t elements_at_a_time)
    : ranks_(std::move(ranks)), elements_at_a_time_(elements_at_a_time) {
  std::string mine;
  for (const NamedParameter& parameter : matrices) {
    const auto& shard = parameter.shard;
    if (shard && shard->box) {
      throw std::logic_error("ranks exchange ranges of '" + parameter.name +
                             "', not of a box of it");
    }
    const auto shape = shard ? shard->shape : parameter.tensor.sizes().vec();
    matrices_.push_back({.rows = shape.at(0), .columns = shape.at(1)});
    mine += fmt::format("{} {} ", shard ? shard->begin : 0,
                        shard ? shard->end : parameter.tensor.numel());
  }
  if (ranks_.is_single_rank()) {
    require_wholes(matrices);
    return;
  }
  for (const std::string& text : ranks_.all_gather(mine)) {
    std::istringstream numbers(text);
    for (Matrix& matrix : matrices_) {
      Piece piece;
      if (!(numbers >> piece.begin >> piece.end)) {
        throw std::logic_error("ranks exchange parts of different matrices");
      }
      matrix.held.push_back(piece);
    }
  }
  deal();
}

void MatrixExchange::require_wholes(const std::vector<NamedParameter>& matrices) const {
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    if (matrices[i].tensor.numel() == matrices_[i].rows * matrices_[i].columns) continue;
    throw std::logic_error(fmt::format(
        "this rank holds a part of the matrix '{}', and the optimizer needs all of it: call "
        "Optimizer::join with the ranks that hold the others, before bind",
        matrices[i].name));
  }
}

void MatrixExchange::deal() {
  std::vector<std::size_t> largest_first(matrices_.size());
  std::iota(largest_first.begin(), largest_first.end(), std::size_t{0});
  const auto work = [this](std::size_t i) {
    return work_of(matrices_[i].rows, matrices_[i].columns);
  };
  std::ranges::stable_sort(largest_first,
                           [&](std::size_t a, std::size_t b) { return work(a) > work(b); });
  std::vector<double> busy(static_cast<std::size_t>(ranks_.world_size()));
  for (const std::size_t i : largest_first) {
    Matrix& matrix = matrices_[i];
    matrix.owner = least_busy(busy);
    busy[static_cast<std::size_t>(matrix.owner)] += work(i);
    std::map<int64_t, std::vector<std::size_t>> holders;  // by where their piece begins
    for (std::size_t rank = 0; rank < matrix.held.size(); ++rank) {
      if (matrix.held[rank].size() > 0) holders[matrix.held[rank].begin].push_back(rank);
    }
    matrix.sends.assign(matrix.held.size(), false);
    int64_t end = 0;
    for (const Piece& held : matrix.held) matrix.sent_back += held.size();
    for (const auto& [begin, ranks] : holders) {
      const auto owner = static_cast<std::size_t>(matrix.owner);
      const bool owner_has_it = std::ranges::find(ranks, owner) != ranks.end();
      const std::size_t sender = owner_has_it ? owner : ranks[owner % ranks.size()];
      matrix.sends[sender] = true;
      const bool alike = std::ranges::all_of(
          ranks, [&](std::size_t rank) { return matrix.held[rank] == matrix.held[ranks.front()]; });
      if (begin != end || !alike) break;
      end = matrix.held[sender].end;
    }
    if (end != matrix.rows * matrix.columns) {
      throw std::logic_error("the ranks' parts do not make up a matrix");
    }
  }
}

std::vector<MatrixExchange::Places> MatrixExchange::rounds(
    const std::vector<std::size_t>& positions) const {
  struct Owner {
    std::size_t round = 0;
    int64_t elements = 0;  // That it has in that round.
  };
  std::vector<Owner> owners(static_cast<std::size_t>(ranks_.world_size()));
  std::vector<Places> rounds;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const Matrix& matrix = matrices_[positions[i]];
    Owner& owner = owners[static_cast<std::size_t>(matrix.owner)];
    const bool has_room =
        owner.elements == 0 || owner.elements + matrix.sent_back <= elements_at_a_time_;
    if (!has_room) owner = {.round = owner.round + 1};
    owner.elements += matrix.sent_back;
    if (owner.round == rounds.size()) rounds.emplace_back();
    rounds[owner.round].push_back(i);
  }
  return rounds;
}

void MatrixExchange::run(const std::vector<std::size_t>& positions, std::vector<at::Tensor>& parts,
                         const Compute& compute) const {
  if (ranks_.is_single_rank()) return run_alone(positions, parts, compute);
  for (const Places& round : rounds(positions)) run_round(positions, parts, round, compute);
}

// Shards of one rank are whole, and flat.
void MatrixExchange::run_alone(const std::vector<std::size_t>& positions,
                               std::vector<at::Tensor>& parts, const Compute& compute) const {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Matrix& matrix = matrices_[positions[i]];
    const at::Tensor whole = parts[i].reshape({matrix.rows, matrix.columns});
    parts[i] = compute(positions[i], whole).reshape(parts[i].sizes());
  }
}

void MatrixExchange::run_round(const std::vector<std::size_t>& positions,
                               std::vector<at::Tensor>& parts, const Places& round,
                               const Compute& compute) const {
  const at::TensorOptions options = parts[round.front()].options();
  const auto me = static_cast<std::size_t>(ranks_.rank());
  const auto ranks = static_cast<std::size_t>(ranks_.world_size());
  // Calls `action` with each matrix that `rank` computes with, in order.
  const auto of_owner = [&](std::size_t rank, const auto& action) {
    for (const std::size_t i : round) {
      const Matrix& matrix = matrices_[positions[i]];
      if (matrix.owner == static_cast<int64_t>(rank)) action(i, matrix);
    }
  };

  Parts there(ranks_.world_size());
  std::vector<at::Tensor> pieces;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    of_owner(rank, [&](std::size_t i, const Matrix& matrix) {
      if (!matrix.sends[me]) return;
      pieces.push_back(parts[i].reshape({-1}));
      there.sent[rank] += matrix.held[me].size();
    });
    of_owner(me, [&](std::size_t, const Matrix& matrix) {
      if (matrix.sends[rank]) there.received[rank] += matrix.held[rank].size();
    });
  }
  Cutter arrived(there.exchange(ranks_, pieces, options));
  std::map<std::size_t, at::Tensor> wholes;
  of_owner(me, [&](std::size_t i, const Matrix& matrix) {
    wholes.emplace(i, at::empty({matrix.rows * matrix.columns}, options));
  });
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    of_owner(me, [&](std::size_t i, const Matrix& matrix) {
      if (!matrix.sends[rank]) return;
      const Piece& held = matrix.held[rank];
      wholes.at(i).narrow(0, held.begin, held.size()).copy_(arrived.next(held.size()));
    });
  }
  for (auto& [i, whole] : wholes) {
    const Matrix& matrix = matrices_[positions[i]];
    whole = compute(positions[i], whole.view({matrix.rows, matrix.columns})).reshape({-1});
  }

  Parts back(ranks_.world_size());
  pieces.clear();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    of_owner(me, [&](std::size_t i, const Matrix& matrix) {
      const Piece& held = matrix.held[rank];
      pieces.push_back(wholes.at(i).narrow(0, held.begin, held.size()));
      back.sent[rank] += held.size();
    });
    of_owner(rank, [&](std::size_t, const Matrix& matrix) {
      back.received[rank] += matrix.held[me].size();
    });
  }
  Cutter results(back.exchange(ranks_, pieces, options));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    of_owner(rank, [&](std::size_t i, const Matrix& matrix) {
      parts[i] = results.next(matrix.held[me].size()).view(parts[i].sizes());
    });
  }
}

}  // namespace phalanx
