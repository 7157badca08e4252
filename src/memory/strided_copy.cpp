// SPDX-License-Identifier: Apache-2.0
#include "memory/strided_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace feedline::memory {
namespace {

struct Axis {
  std::int64_t size;
  std::ptrdiff_t in, out;  // bytes
};

// Moves one element. Sizes are compile-time constants, so each is a load and a store.
template <std::size_t kBytes>
void move(const std::byte* in, std::byte* out) {
  std::memcpy(out, in, kBytes);
}

// Blocks of one cache line of elements along both axes, so that each line that is read or written is used completely.
template <std::size_t kBytes>
void copy_plane(const std::byte* in, std::byte* out, const Axis& a, const Axis& b) {
  constexpr std::int64_t kBlock = std::max<std::int64_t>(64 / kBytes, 16);
  for (std::int64_t a0 = 0; a0 < a.size; a0 += kBlock) {
    const std::int64_t a1 = std::min(a0 + kBlock, a.size);
    for (std::int64_t b0 = 0; b0 < b.size; b0 += kBlock) {
      const std::int64_t b1 = std::min(b0 + kBlock, b.size);
      for (std::int64_t i = a0; i < a1; ++i) {
        const std::byte* from = in + i * a.in + b0 * b.in;
        std::byte* to = out + i * a.out + b0 * b.out;
        for (std::int64_t j = b0; j < b1; ++j, from += b.in, to += b.out) move<kBytes>(from, to);
      }
    }
  }
}

template <std::size_t kBytes>
void copy_row(const std::byte* in, std::byte* out, const Axis& axis) {
  if (axis.in == static_cast<std::ptrdiff_t>(kBytes) && axis.out == axis.in) {
    std::memcpy(out, in, static_cast<std::size_t>(axis.size) * kBytes);
    return;
  }
  for (std::int64_t i = 0; i < axis.size; ++i) move<kBytes>(in + i * axis.in, out + i * axis.out);
}

template <std::size_t kBytes>
void copy_axes(const std::byte* in, std::byte* out, std::span<const Axis> axes) {
  if (axes.empty()) return move<kBytes>(in, out);
  if (axes.size() == 1) return copy_row<kBytes>(in, out, axes[0]);
  const Axis& last = axes.back();
  if (axes.size() == 2 && last.in != static_cast<std::ptrdiff_t>(kBytes))
    return copy_plane<kBytes>(in, out, axes[0], last);
  for (std::int64_t i = 0; i < axes[0].size; ++i)
    copy_axes<kBytes>(in + i * axes[0].in, out + i * axes[0].out, axes.subspan(1));
}

}  // namespace

Strides c_strides(std::span<const std::int64_t> size, std::size_t element) {
  Strides strides{};
  auto stride = static_cast<std::ptrdiff_t>(element);
  for (std::size_t i = size.size(); i-- > 0; stride *= size[i]) strides[i] = stride;
  return strides;
}

Strides fortran_strides(std::span<const std::int64_t> size, std::size_t element) {
  Strides strides{};
  auto stride = static_cast<std::ptrdiff_t>(element);
  for (std::size_t i = 0; i < size.size(); stride *= size[i++]) strides[i] = stride;
  return strides;
}

void copy_strided(const std::byte* in, std::span<const std::ptrdiff_t> in_strides, std::byte* out,
                  std::span<const std::ptrdiff_t> out_strides, std::span<const std::int64_t> size,
                  std::size_t element) {
  std::array<Axis, Shape::kMaxDims> axes;
  std::size_t count = 0;
  for (std::size_t i = 0; i < size.size(); ++i) {
    if (size[i] == 0) return;
    if (size[i] != 1) axes[count++] = {size[i], in_strides[i], out_strides[i]};
  }
  // The innermost axis is the one that is contiguous in `out`. If another axis is contiguous in `in`, it comes second.
  const auto step = static_cast<std::ptrdiff_t>(element);
  const auto last = axes.begin() + static_cast<std::ptrdiff_t>(count);
  const auto magnitude = [](std::ptrdiff_t stride) { return stride < 0 ? -stride : stride; };
  std::stable_sort(axes.begin(), last,
                   [&](const Axis& a, const Axis& b) { return magnitude(a.out) > magnitude(b.out); });
  if (count > 2) {
    const auto dense =
        std::find_if(axes.begin(), last - 1, [&](const Axis& axis) { return magnitude(axis.in) == step; });
    if (dense != last - 1) std::rotate(dense, dense + 1, last - 1);
  }
  // Merges axes that are contiguous in both arrays.
  while (count > 1) {
    const Axis& axis = axes[count - 1];
    Axis& outer = axes[count - 2];
    if (outer.in != axis.in * axis.size || outer.out != axis.out * axis.size) break;
    outer = {outer.size * axis.size, axis.in, axis.out};
    --count;
  }
  const std::span<const Axis> used(axes.data(), count);
  switch (element) {
    case 1:
      return copy_axes<1>(in, out, used);
    case 2:
      return copy_axes<2>(in, out, used);
    case 4:
      return copy_axes<4>(in, out, used);
    default:
      return copy_axes<8>(in, out, used);
  }
}

void swap_bytes(std::byte* data, std::size_t count, std::size_t element) {
  const auto swap = [&]<typename T>(T value) {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&value, data + i * sizeof(T), sizeof(T));
      value = std::byteswap(value);
      std::memcpy(data + i * sizeof(T), &value, sizeof(T));
    }
  };
  if (element == 2) swap(std::uint16_t{});
  if (element == 4) swap(std::uint32_t{});
  if (element == 8) swap(std::uint64_t{});
}

}  // namespace feedline::memory
