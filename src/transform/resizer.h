// SPDX-License-Identifier: Apache-2.0
#pragma once

// A resize that hands out its rows one by one, so that a row goes on to its next use while it is in the first-level
// cache. The horizontal pass runs only as far ahead as the vertical one needs: its rows live in a ring.

#include <cstdint>
#include <vector>

#include "memory/pixels.h"
#include "transform/kernels/aligned_vector.h"
#include "transform/kernels/axis_table.h"
#include "transform/kernels/kernels.h"
#include "transform/steps.h"

namespace feedline::transform {

// Which of the two passes comes first, and is rounded to 8 bits.
bool is_vertical_first(const ResizeStep& step);

// A thread keeps one and reuses it. Not for several threads at once.
class Resizer {
 public:
  // Prepares for the rows of step.window, made from `in`, which starts at pixel (step.left, step.top) of the image.
  // `in` must stay until the last row. Requires: `in` covers what source_span() of both directions says.
  void begin(const ResizeStep& step, memory::PixelView in, const Kernels& kernels);
  // Prepares for rows made of the samples of `plane`, with the weights that `columns` and `rows` give to the pixels of
  // the image, from its pixel (left, top) on. `plane` must stay until the last row. Requires: as AxisTable::fold().
  void begin(const AxisTable& columns, const AxisTable& rows, int left, int top, const memory::Plane& plane,
             const Kernels& kernels);
  // The next row of the window, window.width pixels with kReadSlack; valid until the next call.
  const std::uint8_t* next_row();

 private:
  void start(memory::PixelView in, const Kernels& kernels);  // with the tables
  const std::uint8_t* source_row(int y) const;
  const std::uint8_t* narrowed_row(int y);  // through the horizontal pass
  void copy_last_rows();
  void collect_rows(int first, int used);

  memory::PixelView in_;
  const Kernels* kernels_ = nullptr;
  AxisTable columns_, rows_;
  RowPlan plan_;
  bool narrow_ = false;  // a horizontal pass is needed
  bool vertical_first_ = false;
  int width_ = 0;     // of the window
  int row_ = 0;       // next to hand out
  int narrowed_ = 0;  // source rows below this one are in the ring, or were
  int ring_rows_ = 0;
  std::size_t ring_stride_ = 0;
  int first_copied_ = 0;  // source rows from here on are in last_rows_
  std::size_t last_stride_ = 0;
  AlignedVector<std::uint8_t> ring_, column_row_, out_row_, last_rows_;
  std::vector<const std::uint8_t*> taps_;
};

}  // namespace feedline::transform
