// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows that instruct a device to make an output row from an image in its memory: the values drawn and the weights
// computed on the host, in the format of device/cuda/kernels/pixel_job.h.

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

// For messages: the option that moves work to the device, and its alternative.
struct DeviceOption {
  std::string_view what, instead;
};
inline constexpr DeviceOption kCachedOnDevice{"cache(\"device\")", "use cache(\"memory\")"};
inline constexpr DeviceOption kDecodedOnDevice{"decode(device=\"cuda\")", "leave device= out of decode"};

// Checks the operations after caching or decoding on a device. kConfig, with the operation's name, if a device does not
// support one.
Result<void> check_device_operations(std::span<const Operation> operations,
                                     const DeviceOption& option = kCachedOnDevice);

// Returns the size of a row whose operations produce an image of that size, without its rectangles.
std::size_t device_row_bytes(std::span<const Operation> operations, Size size);

// Writes a row. image: its `data` is a device address. columns, rows: scratch. Writes everything or nothing.
// kData: the image is too small for a crop, or needs more weights than there is room for.
// Requires: the drawing's operations were checked; the row has device_row_bytes().
Result<void> write_device_row(const transform::Drawing& drawing, const memory::PixelView& image,
                              transform::AxisTable& columns, transform::AxisTable& rows, std::span<std::byte> row);
// The rectangles to draw over a row after conversion to elements. They are stored at the end of the row, in
// rectangles_bytes() bytes; 0 if most is 0.
std::size_t rectangles_bytes(int most);
void write_rectangles(std::span<const transform::DeviceRectangle> rectangles, std::span<std::byte> to);
// Gathers the rectangles of several rows for the device: a cuda::PixelRow for each in `inputs`, and the rectangles they
// refer to in `rectangles`. row: the first row.
void gather_rectangles(const std::byte* row, std::size_t stride, std::uint64_t rows, int most, std::byte* inputs,
                       std::byte* rectangles);
// Sets the image address that is known only now. Requires: a written row whose image address is not 0.
void set_resident_image(std::span<std::byte> row, std::uint64_t address);
// Writes a row that copies (size.height, size.width, channels) device bytes unchanged.
void write_made_row(std::uint64_t address, Size size, int channels, std::span<std::byte> row);
// Writes an empty row: its output is black, without rectangles.
void clear_device_row(std::span<std::byte> row, int most_rectangles = 0);

}  // namespace feedline::pipeline
