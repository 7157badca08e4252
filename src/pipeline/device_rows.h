// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows that say how a device makes them of an image that it keeps: what was drawn on the host, with the host's weights,
// in the words of device/cuda/kernels/pixel_job.h.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "feedline/error.h"
#include "feedline/operation.h"
#include "memory/pixels.h"
#include "transform/chain.h"
#include "transform/kernels/axis_table.h"

namespace feedline::pipeline {

// What has a device make the rows, and what does not, for messages.
struct RowsThere {
  std::string_view what, instead;
};
inline constexpr RowsThere kKeptThere{"cache(\"device\")", "use cache(\"memory\")"};
inline constexpr RowsThere kDecodedThere{"decode(device=\"cuda\")", "leave device= out of decode"};

// kConfig: one of these operations, which stand behind it, is not done on a device: it is named.
Result<void> check_kept_operations(std::span<const Operation> operations, const RowsThere& there = kKeptThere);

// Of a row, where these operations give an image of that size, without what is written over it.
std::size_t kept_row_bytes(std::span<const Operation> operations, Size size);

// Writes a row. kept: an image of the device, where its `data` is an address. columns, rows: scratch. All or nothing is
// written. kData: the image is too small for a crop, or too large for the room that there is for weights.
// Requires: the drawing is of operations that were checked; the row is of kept_row_bytes().
Result<void> write_kept_row(const transform::Drawing& drawing, const memory::PixelView& kept,
                            transform::AxisTable& columns, transform::AxisTable& rows, std::span<std::byte> row);
// What is written over a row once it is elements: at the end of it, of so many bytes, which are 0 where nothing ever
// is.
std::size_t rectangles_bytes(int most);
void write_rectangles(std::span<const transform::LeftRectangle> rectangles, std::span<std::byte> to);
// Of so many rows, for the device: a cuda::PixelRow for each, and from `rectangles` on what they name. row: the first.
void gather_rectangles(const std::byte* row, std::size_t stride, std::uint64_t rows, int most, std::byte* inputs,
                       std::byte* rectangles);
// Where the image is known only now. Requires: a row that was written, of an image at an address that is not 0.
void set_kept_image(std::span<std::byte> row, std::uint64_t address);
// A row that is (size.height, size.width, channels) bytes of the device as they are.
void write_made_row(std::uint64_t address, Size size, int channels, std::span<std::byte> row);
// A row of which nothing is made: it comes out black, with nothing written over it.
void clear_kept_row(std::span<std::byte> row, int most_rectangles = 0);

}  // namespace feedline::pipeline
