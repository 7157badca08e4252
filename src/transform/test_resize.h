// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "transform/chain.h"
#include "transform/kernels/test_images.h"

namespace feedline::transform {

inline TestImage resized(const TestImage& image, Size size, Interpolation interpolation) {
  Workspace workspace;
  memory::PixelBuffer out;
  EXPECT_TRUE(resize(image.view(), size, interpolation, workspace, out));
  return packed(out.view());
}

}  // namespace feedline::transform
