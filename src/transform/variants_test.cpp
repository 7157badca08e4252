// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/variants.h"

#include <gtest/gtest.h>

#include <set>

#include "transform/chain.h"
#include "transform/kernels/test_images.h"

namespace feedline::transform {
namespace {

TEST(Variants, EndWithThePlainKernels) {
  const std::vector<std::string> names = simd_variants();
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.back(), "scalar");
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(active_simd_variant(), names.front());
}

// Each name selects different functions, so forcing a variant cannot run another variant unnoticed.
TEST(Variants, AreDifferentCode) {
  std::set<const void*> functions;
  for (const Kernels* kernels : all_kernels()) {
    functions.insert(reinterpret_cast<const void*>(kernels->horizontal));
    functions.insert(reinterpret_cast<const void*>(kernels->vertical));
    functions.insert(reinterpret_cast<const void*>(kernels->split));
    functions.insert(reinterpret_cast<const void*>(kernels->lookup_float32));
  }
  EXPECT_EQ(functions.size(), all_kernels().size() * 4);
}

TEST(Variants, ForcingOneMakesItTheActiveOne) {
  for (std::size_t i = 0; i < all_kernels().size(); ++i) {
    const ForcedVariant forced(simd_variants()[i]);
    EXPECT_EQ(&active_kernels(), all_kernels()[i]);
    EXPECT_EQ(active_simd_variant(), simd_variants()[i]);
  }
  EXPECT_EQ(&active_kernels(), all_kernels().front());
}

TEST(Variants, AnUnknownOneIsRefusedByName) {
  const auto refused = force_simd_variant("MMX");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_NE(refused.error().what.find("MMX"), std::string::npos);
  EXPECT_NE(refused.error().what.find("scalar"), std::string::npos);
  EXPECT_EQ(active_simd_variant(), simd_variants().front());
}

}  // namespace
}  // namespace feedline::transform
