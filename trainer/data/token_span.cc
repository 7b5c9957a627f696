// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/token_span.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "trainer/api/broken_sample.h"
#include "trainer/base/xxh3.h"

namespace phalanx {
namespace {

constexpr int64_t kBlock = 4096;
constexpr int64_t kBlocks = 256;

// The places of the blocks that are hashed: all, or kBlocks evenly spread ones.
std::vector<int64_t> sampled_blocks(int64_t begin, int64_t end) {
  std::vector<int64_t> places;
  const int64_t tokens = end - begin;
  if (tokens <= kBlock * kBlocks) {
    for (int64_t place = begin; place < end; place += kBlock) places.push_back(place);
    return places;
  }
  const int64_t last = tokens - kBlock;  // Where the last block that fits begins.
  // last / (kBlocks - 1) * i without the product's overflow, which comes at 36 x 10^15 otherwise.
  const int64_t stride = last / (kBlocks - 1);
  const int64_t rest = last % (kBlocks - 1);
  for (int64_t i = 0; i < kBlocks; ++i) {
    places.push_back(begin + stride * i + rest * i / (kBlocks - 1));
  }
  return places;
}

std::string fingerprint_of(const TokenSpan& span, int64_t sample_length) {
  Xxh3 hash;
  const std::array<int64_t, 2> shape{sample_length, span.end - span.begin};
  hash.add(std::as_bytes(std::span(shape)));
  const bool are_bytes = span.tokens->element() == "bytes";
  std::vector<int64_t> block(kBlock);
  std::vector<unsigned char> narrow(kBlock);
  for (const int64_t place : sampled_blocks(span.begin, span.end)) {
    const std::span part(block.data(), static_cast<size_t>(std::min(kBlock, span.end - place)));
    span.tokens->read(place, part);
    if (are_bytes) {
      std::transform(part.begin(), part.end(), narrow.begin(),
                     [](int64_t token) { return static_cast<unsigned char>(token); });
      hash.add(std::as_bytes(std::span(narrow).first(part.size())));
    } else {
      hash.add(std::as_bytes(part));
    }
  }
  return fmt::format("{}-{}", span.tokens->element(), hash.digits64());
}

}  // namespace

void read_known(const TokenSet& tokens, int64_t begin, std::optional<int64_t> vocabulary_size,
                std::span<int64_t> out) {
  tokens.read(begin, out);
  // As unsigned numbers, negative ones are too large.
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  const auto limit = static_cast<uint64_t>(vocabulary_size.value_or(kAny));
  const auto wrong = std::find_if(
      out.begin(), out.end(), [&](int64_t token) { return static_cast<uint64_t>(token) >= limit; });
  if (wrong == out.end()) return;
  const int64_t place = begin + (wrong - out.begin());
  if (*wrong < 0) {
    throw BrokenSampleError(
        {.source = tokens.file_of(place),
         .kind = "a negative token",
         .message = fmt::format("{} is {}, and no token is negative: the file is broken, or not of "
                                "this format; `trainer data inspect` reads all of it",
                                tokens.place_of(place), *wrong)});
  }
  throw BrokenSampleError(
      {.source = tokens.file_of(place),
       .kind = "a token beyond the vocabulary",
       .message = fmt::format("{} is {}, but the model knows only tokens below {} "
                              "(model.vocab_size): raise that for a new model, else the tokens are "
                              "not of its tokenizer, or the file is broken",
                              tokens.place_of(place), *wrong, *vocabulary_size)});
}

std::string fingerprint_of(const std::vector<TokenSpan>& spans, int64_t sample_length) {
  std::string text = fingerprint_of(spans.front(), sample_length);
  if (spans.size() == 1) return text;
  for (size_t i = 1; i < spans.size(); ++i) text += " " + fingerprint_of(spans[i], sample_length);
  return "tokens-" + xxh3_digits64(text);
}

}  // namespace phalanx
