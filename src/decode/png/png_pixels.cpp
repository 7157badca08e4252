// SPDX-License-Identifier: Apache-2.0
#include "decode/png/png_pixels.h"

#include <algorithm>
#include <cstring>

#include "decode/color.h"

namespace feedline::decode {

void PngPixels::prepare(const PngHeader& header, std::span<const std::byte> palette, ColorMode mode) {
  header_ = header;
  mode_ = mode;
  copies_samples_ = false;
  if (header.channels() != 1 || header.depth > 8) return;
  const int values = 1 << header.depth;
  const int entries = static_cast<int>(palette.size() / 3);
  for (int i = 0; i < values; ++i) {
    auto& entry = rgb_[static_cast<std::size_t>(i)];
    if (header.color == PngColor::kGray)
      entry.fill(static_cast<std::uint8_t>(i * 255 / (values - 1)));
    else if (i < entries)
      std::memcpy(entry.data(), &palette[static_cast<std::size_t>(3 * i)], 3);
    else
      entry.fill(0);
    if (mode == ColorMode::kL) entry.fill(luma(entry[0], entry[1], entry[2]));
  }
}

void PngPixels::prepare_labels(const PngHeader& header) {
  header_ = header;
  mode_ = ColorMode::kL;
  copies_samples_ = header.depth == 16;
  if (copies_samples_) return;
  const int values = 1 << header.depth;
  // Pillow does not scale 1-bit grey, but expands 2- and 4-bit grey to a byte
  const int factor = header.color == PngColor::kPalette || header.depth == 1 ? 1 : 255 / (values - 1);
  for (int i = 0; i < values; ++i) rgb_[static_cast<std::size_t>(i)].fill(static_cast<std::uint8_t>(i * factor));
}

void PngPixels::prepare_samples(const PngHeader& header) {
  header_ = header;
  mode_ = ColorMode::kL;
  copies_samples_ = header.depth >= 8;
  for (std::size_t i = 0; i < rgb_.size(); ++i) rgb_[i].fill(static_cast<std::uint8_t>(i));
}

void PngPixels::copy_samples(const std::uint8_t* row, int first, int count, std::uint8_t* out) const {
  const auto channels = static_cast<std::size_t>(header_.channels());
  const std::size_t samples = static_cast<std::size_t>(count) * channels;
  if (header_.depth == 8) {
    std::memcpy(out, row + static_cast<std::size_t>(first) * channels, samples);
    return;
  }
  const std::uint8_t* const in = row + static_cast<std::size_t>(first) * channels * 2;
  for (std::size_t i = 0; i < samples; ++i) {
    std::uint16_t sample = 0;
    std::memcpy(&sample, in + 2 * i, sizeof sample);
    sample = static_cast<std::uint16_t>(sample << 8 | sample >> 8);
    std::memcpy(out + 2 * i, &sample, sizeof sample);
  }
}

template <int channels>
void PngPixels::look_up(const std::uint8_t* row, int first, int count, std::uint8_t* out) const {
  const int depth = header_.depth;
  if (depth == 8) {
    for (const std::uint8_t* in = row + first; count > 0; --count, ++in, out += channels)
      std::memcpy(out, rgb_[*in].data(), channels);
    return;
  }
  const unsigned mask = (1U << depth) - 1;
  for (int i = 0; i < count; ++i, out += channels) {
    const std::int64_t bit = std::int64_t{first + i} * depth;  // the first pixel is in the high bits
    const unsigned value = static_cast<unsigned>(row[bit / 8]) >> (8 - depth - bit % 8) & mask;
    std::memcpy(out, rgb_[value].data(), channels);
  }
}

void PngPixels::convert(const std::uint8_t* row, int first, int count, std::uint8_t* out) const {
  if (copies_samples_) return copy_samples(row, first, count, out);
  const bool to_rgb = mode_ == ColorMode::kRgb;
  if (header_.channels() == 1 && header_.depth <= 8) {
    if (to_rgb)
      look_up<3>(row, first, count, out);
    else
      look_up<1>(row, first, count, out);
    return;
  }
  const int sample_bytes = header_.depth / 8;  // the high byte comes first
  const int step = header_.channels() * sample_bytes;
  const std::uint8_t* in = row + std::int64_t{first} * step;
  const bool is_rgb = header_.channels() >= 3;
  if (step == 3 && to_rgb) {
    std::memcpy(out, in, static_cast<std::size_t>(count) * 3);
  } else if (is_rgb && to_rgb) {
    for (int i = 0; i < count; ++i, in += step, out += 3)
      for (int c = 0; c < 3; ++c) out[c] = in[c * sample_bytes];
  } else if (is_rgb) {
    for (int i = 0; i < count; ++i, in += step) out[i] = luma(in[0], in[sample_bytes], in[2 * sample_bytes]);
  } else {
    const bool clip = header_.color == PngColor::kGray;  // 16 bits: Pillow's mode I;16
    for (int i = 0; i < count; ++i, in += step) {
      const std::uint8_t value = !clip ? in[0] : in[0] != 0 ? std::uint8_t{255} : in[1];
      if (to_rgb)
        std::fill_n(out + 3 * i, 3, value);
      else
        out[i] = value;
    }
  }
}

}  // namespace feedline::decode
