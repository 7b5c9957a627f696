// SPDX-License-Identifier: Apache-2.0
#include "trainer/compute/gemm.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <stdexcept>

#include "tests/tensors.h"
#include "trainer/compute/product_work.h"

namespace phalanx::compute {
namespace {

// A process keeps what it has begun with: each case has one to itself. Its exit code.
int in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      at::set_num_threads(1);
      _exit(body() ? 0 : 1);
    } catch (const std::exception& error) {
      fprintf(stderr, "%s\n", error.what());
      _exit(2);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

class EachGemm : public testing::TestWithParam<Gemm> {
 protected:
  void SetUp() override {
    const std::string reason = why_unusable(GetParam());
    if (!reason.empty()) GTEST_SKIP() << name_of(GetParam()) << ": " << reason;
  }
};

INSTANTIATE_TEST_SUITE_P(, EachGemm,
                         testing::Values(Gemm::library_default, Gemm::mkl, Gemm::onednn),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(EachGemm, MultipliesMatricesOfAllShapes) {
  const int code = in_child([] {
    use(GetParam());
    const std::vector<WeightShape> shapes = {{1, 1}, {3, 5}, {17, 64}, {129, 257}, {1024, 384}};
    return ProductWork(shapes).is_correct();
  });
  EXPECT_EQ(code, 0);
}

// A vocabulary's width: without AVX-512 oneDNN writes behind the end of its buffer here, which the
// allocator notices. (Gemm::onednn is then refused.)
TEST_P(EachGemm, MultipliesFewRowsWithManyColumns) {
  const int code = in_child([] {
    use(GetParam());
    const at::Tensor head = tensors::ones({50257, 64});
    for (int64_t rows = 1; rows < 130; rows += 3) {
      const at::Tensor product = tensors::ones({rows, 64}).mm(head.t());
      if (!product.eq(64).all().item().toBool()) return false;
    }
    return true;
  });
  EXPECT_EQ(code, 0);
}

TEST_P(EachGemm, GivesTheSameBitsAgain) {
  const int code = in_child([] {
    use(GetParam());
    const at::Tensor a = tensors::randn({130, 384});
    const at::Tensor b = tensors::randn({384, 1150});
    const at::Tensor first = a.mm(b);
    for (int i = 0; i < 5; ++i) {
      if (!a.mm(b).equal(first)) return false;
    }
    return true;
  });
  EXPECT_EQ(code, 0);
}

// What oneDNN has no part in: other types, empty ones, sums of other weights, broadcast matrices.
TEST_P(EachGemm, LeavesOtherProductsAsTheyAre) {
  const int code = in_child([] {
    const at::Tensor a = tensors::ones({3, 4});
    const at::Tensor b = tensors::ones({4, 2});
    const at::Tensor bias = tensors::ones({2});
    use(GetParam());
    const bool doubles = a.to(at::kDouble).mm(b.to(at::kDouble)).sum().item<double>() == 24;
    const bool empty = tensors::ones({0, 4}).mm(b).size(0) == 0 &&
                       tensors::ones({3, 0}).mm(tensors::ones({0, 2})).sum().item<float>() == 0;
    const bool weighted = bias.addmm(a, b, 2, 3).equal(tensors::full({3, 2}, 14));
    const bool plain = bias.addmm(a, b).equal(tensors::full({3, 2}, 5));
    const bool matrix = tensors::ones({3, 2}).addmm(a, b).equal(tensors::full({3, 2}, 5));
    const bool expanded =
        tensors::ones({1, 1}).expand({3, 4}).mm(b).equal(tensors::full({3, 2}, 4));
    return doubles && empty && weighted && plain && matrix && expanded;
  });
  EXPECT_EQ(code, 0);
}

TEST_P(EachGemm, HasAutogradSeeIt) {
  const int code = in_child([] {
    use(GetParam());
    const at::Tensor x = tensors::ones({3, 4}).requires_grad_();
    const at::Tensor w = tensors::full({4, 2}, 0.5).requires_grad_();
    x.mm(w).sum().backward();
    return x.grad().equal(tensors::ones({3, 4})) && w.grad().equal(tensors::full({4, 2}, 3));
  });
  EXPECT_EQ(code, 0);
}

TEST(Gemm, NamesAreThoseOfTheConfig) {
  for (const char* name : {"auto", "default", "mkl", "onednn"}) {
    ASSERT_TRUE(gemm_named(name)) << name;
    EXPECT_EQ(name_of(*gemm_named(name)), name);
  }
  EXPECT_EQ(gemm_named("blis"), std::nullopt);
}

TEST(Gemm, DefaultIsTheFirstCandidate) {
  ASSERT_FALSE(candidates().empty());
  EXPECT_EQ(candidates().front(), Gemm::library_default);
}

// MKL keeps its first answer: a choice that came too late must not seem to count.
TEST(Gemm, ComesBeforeTheFirstProduct) {
  const std::vector<Gemm> all = candidates();
  if (std::find(all.begin(), all.end(), Gemm::mkl) == all.end()) {
    GTEST_SKIP() << "on this CPU MKL's default is its fastest";
  }
  const int code = in_child([] {
    tensors::ones({64, 64}).mm(tensors::ones({64, 64}));
    try {
      use(Gemm::mkl);
    } catch (const std::logic_error&) {
      return true;
    }
    return false;
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace phalanx::compute
