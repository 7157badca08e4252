// SPDX-License-Identifier: Apache-2.0
#include "transform/deep/deep_resizer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "transform/deep/deep_numbers.h"

namespace feedline::transform {
namespace {

template <typename T, typename Work>
void weigh_row(const T* row, std::size_t count, Work weight, bool is_first, Work* sums) {
  if (is_first)
    for (std::size_t i = 0; i < count; ++i) sums[i] = number_from<Work>(row[i]) * weight;
  else
    for (std::size_t i = 0; i < count; ++i) sums[i] += number_from<Work>(row[i]) * weight;
}

// Weighs two rows at once, which halves the reads and writes of the sums.
template <typename T, typename Work>
void weigh_rows(const T* row, const T* other, std::size_t count, Work weight, Work other_weight, bool is_first,
                Work* sums) {
  if (is_first)
    for (std::size_t i = 0; i < count; ++i)
      sums[i] = number_from<Work>(row[i]) * weight + number_from<Work>(other[i]) * other_weight;
  else
    for (std::size_t i = 0; i < count; ++i)
      sums[i] += number_from<Work>(row[i]) * weight + number_from<Work>(other[i]) * other_weight;
}

template <std::size_t kChannels, typename Work>
void narrow_row(const Work* row, const AxisWeights& columns, const Work* weights, std::size_t channels, Work* out) {
  const auto taps = static_cast<std::size_t>(columns.taps);
  const std::size_t count = columns.first.size();
  for (std::size_t x = 0; x < count; ++x, weights += taps) {
    const auto used = static_cast<std::size_t>(columns.used[x]);
    const std::size_t step = kChannels != 0 ? kChannels : channels;
    const Work* from = row + static_cast<std::size_t>(columns.first[x]) * step;
    if constexpr (kChannels != 0) {
      std::array<Work, kChannels> sums{};
      for (std::size_t tap = 0; tap < used; ++tap, from += kChannels)
        for (std::size_t c = 0; c < kChannels; ++c) sums[c] += from[c] * weights[tap];
      for (std::size_t c = 0; c < kChannels; ++c) *out++ = sums[c];
    } else {
      for (std::size_t c = 0; c < channels; ++c) {
        Work sum = 0;
        for (std::size_t tap = 0; tap < used; ++tap) sum += from[tap * channels + c] * weights[tap];
        *out++ = sum;
      }
    }
  }
}

}  // namespace

void DeepResizer::begin(const ResizeStep& step, const memory::DeepView& in, bool in_doubles) {
  in_ = in;
  is_nearest_ = step.interpolation == Interpolation::kNearest;
  dtype_ = is_nearest_ ? in.dtype : in_doubles ? DType::kFloat64 : DType::kFloat32;
  columns_.compute(columns_of(step), step.left);
  if (dtype_ == DType::kFloat32) column_weights_.assign(columns_.weights.begin(), columns_.weights.end());
  rows_.compute(rows_of(step), step.top);
}

const std::byte* DeepResizer::row(int y) {
  if (!is_nearest_)
    return dtype_ == DType::kFloat64 ? filtered_row(y, columns_.weights.data(), wide_sums_, wide_made_)
                                     : filtered_row(y, column_weights_.data(), sums_, made_);
  const auto bytes = static_cast<std::size_t>(in_.bytes.channels);
  nearest_.resize(columns_.first.size() * bytes);
  const std::uint8_t* const from = in_.bytes.row(rows_.first[static_cast<std::size_t>(y)]);
  std::byte* to = nearest_.data();
  for (const int x : columns_.first) {
    std::memcpy(to, from + static_cast<std::size_t>(x) * bytes, bytes);
    to += bytes;
  }
  return nearest_.data();
}

// The vertical pass is first: its loops are over whole rows.
template <typename Work>
const std::byte* DeepResizer::filtered_row(int y, const Work* column_weights, AlignedVector<Work>& sums,
                                           AlignedVector<Work>& made) {
  const auto channels = static_cast<std::size_t>(in_.channels);
  const std::size_t count = static_cast<std::size_t>(in_.width()) * channels;
  const auto at = static_cast<std::size_t>(y);
  sums.resize(count);
  made.resize(columns_.first.size() * channels);
  const double* const weights = rows_.weights.data() + at * static_cast<std::size_t>(rows_.taps);
  with_number_type(in_.dtype, [&]<typename T>(T) {
    const int first = rows_.first[at], used = rows_.used[at];
    int tap = 0;
    for (; tap + 1 < used; tap += 2)
      weigh_rows(in_.row<T>(first + tap), in_.row<T>(first + tap + 1), count, static_cast<Work>(weights[tap]),
                 static_cast<Work>(weights[tap + 1]), tap == 0, sums.data());
    if (tap < used) weigh_row(in_.row<T>(first + tap), count, static_cast<Work>(weights[tap]), tap == 0, sums.data());
  });
  switch (channels) {
    case 1:
      narrow_row<1>(sums.data(), columns_, column_weights, channels, made.data());
      break;
    case 3:
      narrow_row<3>(sums.data(), columns_, column_weights, channels, made.data());
      break;
    case 4:
      narrow_row<4>(sums.data(), columns_, column_weights, channels, made.data());
      break;
    default:
      narrow_row<0>(sums.data(), columns_, column_weights, channels, made.data());
  }
  return reinterpret_cast<const std::byte*>(made.data());
}

}  // namespace feedline::transform
