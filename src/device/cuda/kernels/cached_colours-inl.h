// SPDX-License-Identifier: Apache-2.0

// The kernel that changes the colours of rows written by cached_rows-inl.h, in place: brightness, contrast, saturation,
// hue and grey. The kernel follows the engine's own rules (transform/pixel_ops), with the same types and order of
// arithmetic. Each block processes one row, and each of its threads a fixed set of pixels. Threads wait for each other
// only for the mean that contrast uses. This file is compiled in the same way as pixel_kernels-inl.h, after
// cached_rows-inl.h.

#ifndef FEEDLINE_DEVICE_CUDA_KERNELS_KEPT_COLOURS_INL_H_
#define FEEDLINE_DEVICE_CUDA_KERNELS_KEPT_COLOURS_INL_H_

namespace feedline::device::cuda {

FEEDLINE_DEVICE inline const CachedRow& cached_row(const CachedRowsJob& job, std::uint32_t row) {
  return *reinterpret_cast<const CachedRow*>(job.in + row * job.in_stride);
}

FEEDLINE_DEVICE inline std::uint8_t* made_row(const CachedRowsJob& job, std::uint32_t row) {
  return job.out + row * job.out_stride;
}

FEEDLINE_DEVICE inline std::uint32_t grey_of(const std::uint8_t* pixel, std::uint32_t channels) {
  if (channels < 3) return pixel[0];
  return (pixel[0] * 19595u + pixel[1] * 38470u + pixel[2] * 7471u + 0x8000u) >> 16;
}

// Interpolates or extrapolates between two bytes: computes a product and a sum, rounds each, and clamps the result.
FEEDLINE_DEVICE inline std::uint8_t blended_byte(std::uint32_t from, std::uint32_t to, float factor) {
  const float way = static_cast<float>(static_cast<std::int32_t>(to) - static_cast<std::int32_t>(from));
  const float value = static_cast<float>(from) + factor * way;
  return value <= 0.0f ? std::uint8_t{0} : value >= 255.0f ? std::uint8_t{255} : static_cast<std::uint8_t>(value);
}

FEEDLINE_DEVICE inline std::int32_t cut_byte(std::int32_t value) { return value < 0 ? 0 : value > 255 ? 255 : value; }

// Rounds half away from zero. Requires: value >= 0.
FEEDLINE_DEVICE inline std::uint8_t rounded_byte(double value) {
  const auto whole = static_cast<std::int32_t>(value);
  return static_cast<std::uint8_t>(cut_byte(whole + (value - whole >= 0.5 ? 1 : 0)));
}

// Returns the hue of a pixel that is not grey, in units of 1/256 of the colour circle.
FEEDLINE_DEVICE inline std::uint8_t hue_of(const std::uint8_t* rgb, std::uint32_t most, std::uint32_t least) {
  const float range = static_cast<float>(most - least);
  const float red = static_cast<float>(most - rgb[0]) / range;
  const float green = static_cast<float>(most - rgb[1]) / range;
  const float blue = static_cast<float>(most - rgb[2]) / range;
  float hue = static_cast<float>(4.0 + green - red);
  if (rgb[0] == most) {
    hue = blue - green;
  } else if (rgb[1] == most) {
    hue = static_cast<float>(2.0 + red - blue);
  }
  const double turns = hue / 6.0 + 1.0;
  hue = static_cast<float>(turns >= 1.0 ? turns - 1.0 : turns);
  return static_cast<std::uint8_t>(cut_byte(static_cast<std::int32_t>(hue * 255.0)));
}

// Converts to Pillow's HSV, shifts the hue and converts back to RGB; grey pixels have no hue and do not change.
FEEDLINE_DEVICE inline void turn_hue(std::uint8_t* rgb, std::uint32_t shift) {
  std::uint32_t most = rgb[0], least = rgb[0];
  FEEDLINE_ROLLED for (int i = 1; i < 3; ++i) {
    most = rgb[i] > most ? rgb[i] : most;
    least = rgb[i] < least ? rgb[i] : least;
  }
  if (most == least) return;
  const std::uint32_t hue = (hue_of(rgb, most, least) + shift) & 255u;
  const float share = static_cast<float>(most - least) / static_cast<float>(most);
  const auto saturation = static_cast<std::uint8_t>(cut_byte(static_cast<std::int32_t>(share * 255.0)));
  const auto value = static_cast<std::uint8_t>(most);
  if (saturation == 0) {
    rgb[0] = rgb[1] = rgb[2] = value;
    return;
  }
  const double sixths = static_cast<float>(hue) * 6.0 / 255.0;
  const auto whole = static_cast<std::int32_t>(sixths);
  const float f = static_cast<float>(sixths - static_cast<float>(whole));
  const float s = static_cast<float>(static_cast<float>(saturation) / 255.0);
  const float v = static_cast<float>(value);
  const std::uint8_t p = rounded_byte(v * (1.0 - s));
  const std::uint8_t q = rounded_byte(v * (1.0 - s * f));
  const std::uint8_t t = rounded_byte(v * (1.0 - s * (1.0 - f)));
  const std::int32_t sector = whole % 6;
  rgb[0] = sector == 0 || sector == 5 ? value : sector == 1 ? q : sector == 4 ? t : p;
  rgb[1] = sector == 1 || sector == 2 ? value : sector == 0 ? t : sector == 3 ? q : p;
  rgb[2] = sector == 3 || sector == 4 ? value : sector == 2 ? t : sector == 5 ? q : p;
}

FEEDLINE_DEVICE inline void change_pixel(std::uint8_t* pixel, std::uint32_t channels, const ColourChange& colour,
                                         std::uint32_t mean) {
  const bool is_rgb = channels == 3;
  if (colour.kind == ColourChange::kHue) {
    if (is_rgb) turn_hue(pixel, colour.value);
    return;
  }
  if (colour.kind == ColourChange::kSaturation && !is_rgb) return;
  const std::uint32_t from = colour.kind == ColourChange::kBrightness ? 0
                             : colour.kind == ColourChange::kContrast ? mean
                                                                      : grey_of(pixel, channels);
  FEEDLINE_ROLLED for (std::uint32_t c = 0; c < channels; ++c) pixel[c] =
      colour.kind == ColourChange::kGrey ? static_cast<std::uint8_t>(from)
                                         : blended_byte(from, pixel[c], float_of(colour.value));
}

// First phase of a contrast change: sums the grey values of a thread's pixels.
FEEDLINE_DEVICE inline std::uint32_t sum_greys(const CachedRowsJob& job, std::uint32_t row, std::uint32_t thread) {
  const std::uint8_t* const pixels = made_row(job, row);
  std::uint32_t sum = 0;
  FEEDLINE_ROLLED for (std::uint32_t i = thread; i < job.width * job.height; i += kThreads) sum +=
      grey_of(pixels + static_cast<std::uint64_t>(i) * job.channels, job.channels);
  return sum;
}

// Second phase: computes the mean of the sums, rounded half away from zero.
FEEDLINE_DEVICE inline std::uint32_t mean_grey(const CachedRowsJob& job, const std::uint32_t* sums) {
  const std::uint64_t pixels = static_cast<std::uint64_t>(job.width) * job.height;
  std::uint64_t sum = 0;
  FEEDLINE_ROLLED for (std::uint32_t i = 0; i < kThreads; ++i) sum += sums[i];
  return static_cast<std::uint32_t>((2 * sum + pixels) / (2 * pixels));
}

// Changes the colours of a thread's pixels: the third phase of contrast, and the only phase of other colour changes.
FEEDLINE_DEVICE inline void change_pixels(const CachedRowsJob& job, std::uint32_t row, std::uint32_t thread,
                                          const ColourChange& colour, std::uint32_t mean) {
  std::uint8_t* const pixels = made_row(job, row);
  FEEDLINE_ROLLED for (std::uint32_t i = thread; i < job.width * job.height; i += kThreads)
      change_pixel(pixels + static_cast<std::uint64_t>(i) * job.channels, job.channels, colour, mean);
}

}  // namespace feedline::device::cuda

#endif  // include guard
