// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tests that every set of kernels must pass (implemented in kernel_contract_test.cpp). Results must equal those of
// plain 64-bit arithmetic, within the bounds in kernels.h. To register another set:
//   INSTANTIATE_TEST_SUITE_P(Mine, KernelContract, ::testing::Values(&my_kernels), name_of_kernels);

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "transform/kernels/kernels.h"

namespace feedline::transform {

class KernelContract : public ::testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }

  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  // Half of the values are extremes, because extremes cause overflow.
  std::vector<std::uint8_t> bytes(std::size_t count) {
    std::vector<std::uint8_t> out(count);
    const bool extreme = number(0, 1) == 1;
    for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(extreme ? number(0, 1) * 255 : number(0, 255));
    return out;
  }

  std::mt19937 random_{20261121};
};

inline std::string name_of_kernels(const ::testing::TestParamInfo<const Kernels*>& info) { return info.param->name; }

}  // namespace feedline::transform
