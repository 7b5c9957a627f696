// SPDX-License-Identifier: Apache-2.0
// The engines of benchmarks/rpc that stand on calls, with models that rpc_peer.py has as well.

#include "benchmarks/rpc_engines.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <vector>

#include "benchmarks/rate.h"
#include "models/layers/embedding.h"
#include "trainer/api/parameters.h"
#include "trainer/api/unit.h"
#include "trainer/parallel/pipeline/pipeline.h"
#include "trainer/parallel/remote_embedding/remote_embedding.h"

namespace phalanx {
namespace {

constexpr double kRate = 0.01;  // of the layers
constexpr int64_t kRows = 32;   // of a micro-batch

// Of both stages together.
constexpr int64_t kLayers = 8;
constexpr int64_t kLayerWidth = 256;
constexpr int64_t kMicroBatches = 8;

// The table, and how many of its rows a sample looks up.
constexpr int64_t kWords = 10000;
constexpr int64_t kWordWidth = 64;
constexpr int64_t kWordsOfSample = 8;
constexpr double kTableRate = 20;  // of what lies above them, too: their gradients are small

at::Tensor places(int64_t number, int64_t width) {
  return at::arange(kRows * width, at::kFloat).mul(0.01).add(number).view({kRows, width});
}

at::Tensor first_values(int64_t number, int64_t rows, int64_t width) {
  return at::arange(rows * width, at::kFloat)
      .mul(0.1)
      .add(number)
      .sin()
      .mul(0.02)
      .view({rows, width});
}

/// A layer that adds to its input.
class LayerImpl : public torch::nn::Module, public Unit {
 public:
  explicit LayerImpl(int64_t number)
      : weight_(register_parameter("weight", first_values(number, kLayerWidth, kLayerWidth))) {}
  at::Tensor forward(const at::Tensor& input) { return input + at::linear(input, weight_).tanh(); }

 private:
  at::Tensor weight_;
};
UNIT(Layer);

struct Layers : torch::nn::Module {
  Layers() {
    for (int64_t i = 0; i < kLayers; ++i) {
      layers.push_back(register_module(fmt::format("layer{}", i), Layer(i)));
    }
  }

  at::Tensor loss(int64_t micro_batch) {
    const at::Tensor at_places = places(micro_batch, kLayerWidth);
    // A unit's input is [batch, place, width]: one place.
    at::Tensor hidden = at_places.sin().unsqueeze(1);
    for (Layer& layer : layers) hidden = layer(hidden);
    return at::mse_loss(hidden, at_places.cos().unsqueeze(1));
  }

  std::vector<Layer> layers;
};

struct WordsNet : torch::nn::Module {
  WordsNet()
      : words(register_module("words", Embedding(kWords, kWordWidth, 1.0, TableUse::rows))),
        weight(register_parameter("weight", first_values(0, kWordWidth, kWordWidth).mul(10))) {
    const at::NoGradGuard no_grad;
    words->weight.copy_(first_values(1, kWords, kWordWidth).mul(10));
  }

  at::Tensor loss(int64_t step) {
    const at::Tensor numbers = at::arange(kRows * kWordsOfSample, at::kLong)
                                   .mul(7)
                                   .add(13 * step)
                                   .remainder(kWords)
                                   .view({kRows, kWordsOfSample});
    const at::Tensor rows = words(numbers).mean(1);
    return at::mse_loss(at::linear(rows, weight), places(step, kWordWidth).cos());
  }

  Embedding words;
  at::Tensor weight;
};

void descend(const std::vector<NamedParameter>& parameters, double rate) {
  const at::NoGradGuard no_grad;
  for (const NamedParameter& each : parameters) {
    if (each.tensor.grad().defined()) each.tensor.add_(each.tensor.grad(), -rate);
    each.tensor.mutable_grad().reset();
  }
}

}  // namespace

Trained train_by_stages(const Ranks& ranks, int64_t steps) {
  Layers net;
  Pipeline engine(net, ranks);
  at::Tensor mean;
  const double rate = rate_of(steps, [&](int64_t step) {
    mean = at::zeros({1});
    for (int64_t i = 0; i < kMicroBatches; ++i) {
      const at::Tensor loss =
          engine.run([&] { return net.loss(step * kMicroBatches + i); }, i + 1 == kMicroBatches)
              .total() /
          kMicroBatches;
      mean += loss.detach();
      loss.backward();
    }
    descend(local_parameters(net, &engine), kRate);
  });
  ranks.all_reduce(mean);  // the last stage's and zeros
  engine.close();
  return {.rate = rate, .loss = mean.item<double>()};
}

Trained train_with_remote_table(const Ranks& ranks, int64_t steps) {
  WordsNet net;
  RemoteEmbedding engine(net, ranks, {.servers = 1});
  double last = 0;
  const double rate = rate_of(steps, [&](int64_t step) {
    const at::Tensor loss =
        engine.run([&] { return net.loss(step); }, /*synchronize=*/true).total();
    loss.backward();
    descend(local_parameters(net, &engine), kTableRate);
    last = loss.item<double>();
  });
  engine.close();
  return {.rate = rate, .loss = last};
}

}  // namespace phalanx
