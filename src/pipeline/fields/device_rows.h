// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows that instruct a device to make an output row from an image in its memory. These rows contain the drawn values
// and the weights computed on the host, in the format of device/cuda/kernels/pixel_job.h.

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

// The option that moves work to the device, and its alternative, for messages.
struct DeviceOption {
  std::string_view what, instead;
};
inline constexpr DeviceOption kCachedOnDevice{"cache(\"device\")", "use cache(\"memory\")"};
inline constexpr DeviceOption kDecodedOnDevice{"decode(device=\"cuda\")", "omit device= in decode"};

// Checks the operations that follow caching or decoding on a device. kConfig, with the operation's name, if a device
// does not support an operation.
Result<void> check_device_operations(std::span<const Operation> operations,
                                     const DeviceOption& option = kCachedOnDevice);

// Returns the size of a row whose operations produce an image of the given size, without its rectangles.
std::size_t device_row_bytes(std::span<const Operation> operations, Size size);

// Writes a row. image: its `data` is a device address. columns, rows: scratch memory. Writes either the complete row or
// nothing. kData: the image is too small for a crop, or needs more weights than there is room for. Requires:
// check_device_operations() accepted the drawing's operations, and the row has device_row_bytes() bytes.
Result<void> write_device_row(const transform::Drawing& drawing, const memory::PixelView& image,
                              transform::AxisTable& columns, transform::AxisTable& rows, std::span<std::byte> row);
// The rectangles to draw on a row after its conversion to elements. The rectangles are stored at the end of the row, in
// rectangles_bytes() bytes, which is 0 if `most` is 0.
std::size_t rectangles_bytes(int most);
void write_rectangles(std::span<const transform::DeviceRectangle> rectangles, std::span<std::byte> to);
// Gathers the rectangles of several rows for the device: writes a cuda::PixelRow for each row to `inputs`, and the
// rectangles to `rectangles`. row: the first row.
void gather_rectangles(const std::byte* row, std::size_t stride, std::uint64_t rows, int most, std::byte* inputs,
                       std::byte* rectangles);
// Sets the image address, which was not known when the row was written. Requires: the row was written with an image
// address other than 0.
void set_resident_image(std::span<std::byte> row, std::uint64_t address);
// Writes a row that copies (size.height, size.width, channels) bytes in device memory unchanged.
void write_made_row(std::uint64_t address, Size size, int channels, std::span<std::byte> row);
// Writes an empty row, whose output is black and has no rectangles.
void clear_device_row(std::span<std::byte> row, int most_rectangles = 0);

}  // namespace feedline::pipeline
