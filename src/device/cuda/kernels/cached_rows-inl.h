// SPDX-License-Identifier: Apache-2.0

// The kernel that crops, pads, resizes and mirrors images cached on the device, and writes the results as rows of
// bytes. The kernel uses only integers, with weights computed by the engine, so its bytes equal the engine's. This file
// is compiled in the same way as pixel_kernels-inl.h, after that file.

#ifndef FEEDLINE_DEVICE_CUDA_KERNELS_KEPT_ROWS_INL_H_
#define FEEDLINE_DEVICE_CUDA_KERNELS_KEPT_ROWS_INL_H_

namespace feedline::device::cuda {

FEEDLINE_DEVICE inline std::int32_t remainder_of(std::int32_t i, std::int32_t period) {
  const std::int32_t rest = i % period;
  return rest < 0 ? rest + period : rest;
}

// Returns the position in the region for index `i` along an axis of `size` pixels; -1 means the fill value.
FEEDLINE_DEVICE inline std::int32_t border_place(std::int32_t i, std::int32_t size, std::uint32_t border) {
  if (i >= 0 && i < size) return i;
  if (border == CachedRow::kEdge) return i < 0 ? 0 : size - 1;
  if (border == CachedRow::kReflect) {
    if (size == 1) return 0;
    const std::int32_t place = remainder_of(i, 2 * (size - 1));
    return place < size ? place : 2 * (size - 1) - place;
  }
  if (border == CachedRow::kSymmetric) {
    const std::int32_t place = remainder_of(i, 2 * size);
    return place < size ? place : 2 * size - 1 - place;
  }
  return -1;
}

FEEDLINE_DEVICE inline std::int32_t to_byte(std::int32_t sum) {
  const std::int32_t value = sum >> kWeightBits;
  return value < 0 ? 0 : value > 255 ? 255 : value;
}

// Returns one channel of a pixel in the region.
FEEDLINE_DEVICE inline std::int32_t cached_byte(const CachedRow& row, const CachedRowsJob& job, std::int32_t x,
                                                std::int32_t y, std::uint32_t channel) {
  const auto* const line =
      reinterpret_cast<const std::uint8_t*>(row.pixels) + static_cast<std::uint64_t>(row.top + y) * row.stride;
  return line[static_cast<std::uint64_t>(row.left + x) * job.channels + channel];
}

FEEDLINE_DEVICE inline std::uint8_t copied(const CachedRow& row, const CachedRowsJob& job, const PixelPosition& at) {
  const std::int32_t x = border_place(static_cast<std::int32_t>(at.x) + row.shift_x, row.width, row.border);
  const std::int32_t y = border_place(static_cast<std::int32_t>(at.y) + row.shift_y, row.height, row.border);
  if (x < 0 || y < 0) return static_cast<std::uint8_t>(row.fill >> (8 * at.channel));
  return static_cast<std::uint8_t>(cached_byte(row, job, x, y, at.channel));
}

// Resizes in both directions: each sum in one direction is rounded to a byte, which is an input to the sum in the other
// direction.
FEEDLINE_DEVICE inline std::uint8_t resized(const CachedRow& row, const CachedRowsJob& job, const PixelPosition& at) {
  const auto* const tables = reinterpret_cast<const std::int32_t*>(&row + 1);
  const std::int32_t* const column = tables + at.x * (2 + row.column_taps);
  const std::int32_t* const line =
      tables + static_cast<std::uint64_t>(job.width) * (2 + row.column_taps) + at.y * (2 + row.row_taps);
  const bool vertical_first = (row.flags & CachedRow::kVerticalFirst) != 0;
  const std::int32_t* const outer = vertical_first ? column : line;
  const std::int32_t* const inner = vertical_first ? line : column;
  std::int32_t sum = 1 << (kWeightBits - 1);
  FEEDLINE_ROLLED for (std::int32_t i = 0; i < outer[1]; ++i) {
    std::int32_t part = 1 << (kWeightBits - 1);
    FEEDLINE_ROLLED for (std::int32_t j = 0; j < inner[1]; ++j) {
      const std::int32_t x = column[0] + (vertical_first ? i : j), y = line[0] + (vertical_first ? j : i);
      part += cached_byte(row, job, x, y, at.channel) * inner[2 + j];
    }
    sum += to_byte(part) * outer[2 + i];
  }
  return static_cast<std::uint8_t>(to_byte(sum));
}

// Neighbouring threads write neighbouring bytes.
FEEDLINE_DEVICE inline void fill_cached(const CachedRowsJob& job, std::uint32_t block, std::uint32_t thread) {
  const std::uint32_t bytes = job.width * job.height * job.channels, shares = (bytes + kShare - 1) / kShare;
  const std::uint32_t number = block / shares, first = (block % shares) * kShare;
  const std::uint32_t last = bytes - first < kShare ? bytes : first + kShare;
  const CachedRow& row = *reinterpret_cast<const CachedRow*>(job.in + number * job.in_stride);
  std::uint8_t* const out = job.out + number * job.out_stride;
  FEEDLINE_ROLLED for (std::uint32_t i = first + thread; i < last; i += kThreads) {
    const std::uint32_t pixel = i / job.channels;
    PixelPosition at{pixel % job.width, pixel / job.width, i % job.channels};
    if (row.flags & CachedRow::kMirrored) at.x = job.width - 1 - at.x;
    if (row.flags & CachedRow::kFlipped) at.y = job.height - 1 - at.y;
    out[i] = row.pixels == 0                          ? std::uint8_t{0}
             : (row.flags & CachedRow::kResized) != 0 ? resized(row, job, at)
                                                      : copied(row, job, at);
  }
}

}  // namespace feedline::device::cuda

#endif  // include guard
