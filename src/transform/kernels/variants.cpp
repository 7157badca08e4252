// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/variants.h"

#include <atomic>

#include "base/simd_targets.h"

namespace feedline::transform {
namespace {

constexpr int kOldestPillow = 10;
constexpr int kNewestPillow = 13;

std::atomic<const Kernels*>& forced() {
  static std::atomic<const Kernels*> kernels{nullptr};
  return kernels;
}

std::atomic<int> followed{kNewestPillow};

}  // namespace

int followed_pillow() { return followed.load(std::memory_order_relaxed); }

Result<void> follow_pillow(int major) {
  if (major < kOldestPillow || major > kNewestPillow)
    return config_error("Pillow " + std::to_string(major) + " is not supported: Pillow " +
                        std::to_string(kOldestPillow) + " to " + std::to_string(kNewestPillow) + " are");
  followed.store(major, std::memory_order_relaxed);
  return {};
}

const std::vector<const Kernels*>& all_kernels() {
  static const auto kernels = base::with_plain(simd_kernels(), scalar_kernels());
  return kernels;
}

// Initialized when the library is loaded. If a thread were initializing this variable during fork(), the initialization
// would stay incomplete in the child, which would wait for it forever.
[[maybe_unused]] const auto& made_at_load = all_kernels();

const Kernels& active_kernels() {
  // relaxed: the tables it points to are complete before any thread can store them
  const Kernels* kernels = forced().load(std::memory_order_relaxed);
  return kernels ? *kernels : *all_kernels().front();
}

std::vector<std::string> simd_variants() {
  std::vector<std::string> names;
  for (const Kernels* kernels : all_kernels()) names.emplace_back(kernels->name);
  return names;
}

std::string active_simd_variant() { return active_kernels().name; }

Result<void> force_simd_variant(const std::string& name) {
  if (name.empty()) {
    forced().store(nullptr, std::memory_order_relaxed);
    return {};
  }
  std::string known;
  for (const Kernels* kernels : all_kernels()) {
    if (name == kernels->name) {
      forced().store(kernels, std::memory_order_relaxed);
      return {};
    }
    known += (known.empty() ? "" : ", ") + std::string(kernels->name);
  }
  return config_error("SIMD variant \"" + name + "\" is not supported on this machine; available variants: " + known);
}

}  // namespace feedline::transform
