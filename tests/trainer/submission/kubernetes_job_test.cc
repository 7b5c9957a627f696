// SPDX-License-Identifier: Apache-2.0
#include "trainer/submission/kubernetes_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace phalanx {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

TEST(DnsLabel, OfAnyNameIsALabel) {
  EXPECT_EQ(dns_label("my_run.v2"), "my-run-v2");
  EXPECT_EQ(dns_label("2026"), "run-2026");
  EXPECT_EQ(dns_label("__"), "run");
  EXPECT_EQ(dns_label("quickstart,optimizer.lr=1e-3"), "quickstart-optimizer-lr-1e-3");
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    std::string name;
    for (unsigned length = random() % 80; length > 0; --length) {
      name += static_cast<char>(random() % 256);
    }
    const std::string label = dns_label(name);
    EXPECT_THAT(label, MatchesRegex("[a-z][a-z0-9-]*")) << name;
    EXPECT_FALSE(label.ends_with('-'));
    EXPECT_LE(label.size(), 52U);
    EXPECT_EQ(dns_label(label), label);
  }
}

KubernetesJob job() {
  return {.name = "my-run",
          .image = "registry/trainer:1",
          .trainer = "trainer",
          .config = "a: 1\n\nb: 2\n",
          .claim = "runs",
          .folder = "/data",
          .pods = 2,
          .max_restarts = 5,
          .overrides = {"launcher.processes=4"}};
}

TEST(KubernetesManifest, HoldsWhatIsGiven) {
  const std::string manifest = kubernetes_manifest(job());
  for (const char* text :
       {"completions: 2\n", "parallelism: 2\n", "backoffLimit: 10\n", "value: my-run-0.my-run\n",
        "        - \"launcher.processes=4\"\n", "config.yaml: |\n    a: 1\n\n    b: 2\n---\n"}) {
    EXPECT_THAT(manifest, HasSubstr(text));
  }
  EXPECT_THAT(manifest, Not(HasSubstr("limits:")));
}

TEST(KubernetesManifest, WordsOfTheCommandAreNotReplacedByKubernetes) {
  KubernetesJob replaced = job();
  replaced.overrides = {"a=$(date) \"it's\" $(HOME)$HOME"};
  EXPECT_THAT(kubernetes_manifest(replaced), HasSubstr(R"(- "a=$$(date) \"it's\" $$(HOME)$HOME")"));
}

}  // namespace
}  // namespace phalanx
