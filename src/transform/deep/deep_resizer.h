// SPDX-License-Identifier: Apache-2.0
#pragma once

// Resizes stored values with the weights of Pillow and torch (antialias=True), in single precision, or in double
// precision for wide numbers. Returns the rows one by one.

#include <cstddef>

#include "memory/deep_pixels.h"
#include "transform/kernels/aligned_vector.h"
#include "transform/kernels/axis_table.h"
#include "transform/steps.h"

namespace feedline::transform {

// Each thread reuses one object. Not thread-safe.
class DeepResizer {
 public:
  // Prepares to return the rows of step.window from `in`, which begins at pixel (step.left, step.top) of the image and
  // must stay valid until the last row. in_doubles: the rows are doubles instead of floats. Requires: `in` contains
  // source_span() in both directions.
  void begin(const ResizeStep& step, const memory::DeepView& in, bool in_doubles);
  DType dtype() const { return dtype_; }  // of the rows: that of `in` for nearest, else kFloat32 or kFloat64
  // Returns row `y` of the window, valid until the next call.
  const std::byte* row(int y);

 private:
  template <typename Work>
  const std::byte* filtered_row(int y, const Work* column_weights, AlignedVector<Work>& sums,
                                AlignedVector<Work>& made);

  memory::DeepView in_;
  bool is_nearest_ = false;
  DType dtype_ = DType::kFloat32;
  AxisWeights columns_, rows_;
  AlignedVector<float> column_weights_, sums_, made_;
  AlignedVector<double> wide_sums_, wide_made_;
  AlignedVector<std::byte> nearest_;
};

}  // namespace feedline::transform
