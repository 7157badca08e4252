// SPDX-License-Identifier: Apache-2.0
#pragma once

// A resize that returns its rows one by one, so that each row is used while it is in the L1 cache. The horizontal pass
// is only as far ahead as the vertical pass requires, and stores its rows in a ring buffer.

#include <cstdint>
#include <vector>

#include "memory/pixels.h"
#include "transform/kernels/aligned_vector.h"
#include "transform/kernels/axis_table.h"
#include "transform/kernels/kernels.h"
#include "transform/steps.h"

namespace feedline::transform {

// Returns which pass runs first; the result of that pass is rounded to 8 bits.
bool is_vertical_first(const ResizeStep& step);

// Each thread reuses one object. Not thread-safe.
class Resizer {
 public:
  // Prepares to return the rows of step.window from `in`, which starts at pixel (step.left, step.top) of the image.
  // `in` must stay valid until the last row. Requires: `in` contains source_span() in both directions.
  void begin(const ResizeStep& step, memory::PixelView in, const Kernels& kernels);
  // Prepares to return rows from the samples of `plane`, with the weights of `columns` and `rows` for the image's
  // pixels from (left, top) on. `plane` must stay valid until the last row. Requires: as for AxisTable::fold().
  void begin(const AxisTable& columns, const AxisTable& rows, int left, int top, const memory::Plane& plane,
             const Kernels& kernels);
  // Returns the next row of the window: window.width pixels with kReadSlack, valid until the next call.
  const std::uint8_t* next_row();

 private:
  void start(memory::PixelView in, const Kernels& kernels);  // including the tables
  const std::uint8_t* source_row(int y) const;
  const std::uint8_t* narrowed_row(int y);  // runs the horizontal pass
  void copy_last_rows();
  void collect_rows(int first, int used);

  memory::PixelView in_;
  const Kernels* kernels_ = nullptr;
  AxisTable columns_, rows_;
  RowPlan plan_;
  bool narrow_ = false;  // a horizontal pass is needed
  bool vertical_first_ = false;
  int width_ = 0;     // of the window
  int row_ = 0;       // next to return
  int narrowed_ = 0;  // source rows below this one are or were in the ring
  int ring_rows_ = 0;
  std::size_t ring_stride_ = 0;
  int first_copied_ = 0;  // source rows from this one on are in last_rows_
  std::size_t last_stride_ = 0;
  AlignedVector<std::uint8_t> ring_, column_row_, out_row_, last_rows_;
  std::vector<const std::uint8_t*> taps_;
};

}  // namespace feedline::transform
