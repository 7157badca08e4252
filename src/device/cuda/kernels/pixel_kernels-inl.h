// SPDX-License-Identifier: Apache-2.0

// The kernels convert bytes to elements through a table, mirror, overwrite rectangles, and mix rows, in one pass. The
// kernels are compiled twice: for GPUs by tools/kernels, which prepends pixel_job.h and defines FEEDLINE_DEVICE and
// FEEDLINE_ROLLED (loops are not unrolled, to limit the wheel's size), and for the CPU by cpu_kernels.cpp, so that
// tests can compare them with the engine's CPU path. A block works in two phases: all of its threads finish the first
// before any begins the second.

#ifndef FEEDLINE_DEVICE_CUDA_KERNELS_PIXEL_KERNELS_INL_H_
#define FEEDLINE_DEVICE_CUDA_KERNELS_PIXEL_KERNELS_INL_H_

namespace feedline::device::cuda {

FEEDLINE_DEVICE inline std::uint32_t bits_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }
FEEDLINE_DEVICE inline float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

// Converts to IEEE 754 binary16 with integer arithmetic, as the engine does: every GPU and CPU produces the same bits,
// also for NaN.
FEEDLINE_DEVICE inline std::uint16_t half_of(float value) {
  const std::uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu;
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65520 and above: infinity
  if (magnitude < 0x38800000u)  // below 2^-14: adding 0.5 aligns the bits and rounds them
    return static_cast<std::uint16_t>(sign | (bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u));
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

FEEDLINE_DEVICE inline float from_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu, fraction = half & 0x3ffu;
  if (exponent == 0) return float_of(bits_of(static_cast<float>(fraction) * 0x1p-24f) | sign);
  return float_of(sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | (fraction << 13));
}

FEEDLINE_DEVICE inline std::uint16_t bfloat16_of(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);  // NaN stays NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

FEEDLINE_DEVICE inline float from_bfloat16(std::uint16_t half) {
  return float_of(static_cast<std::uint32_t>(half) << 16);
}

struct Bytes {
  using Bits = std::uint8_t;
  FEEDLINE_DEVICE static Bits blend(Bits own, Bits, float, float) { return own; }  // never called
};
struct Floats {
  using Bits = float;
  FEEDLINE_DEVICE static Bits blend(Bits own, Bits partner, float share, float rest) {
    return own * share + partner * rest;
  }
};
struct Halves {
  using Bits = std::uint16_t;
  FEEDLINE_DEVICE static Bits times(Bits value, float factor) { return half_of(from_half(value) * factor); }
  FEEDLINE_DEVICE static Bits blend(Bits own, Bits partner, float share, float rest) {
    return half_of(from_half(times(own, share)) + from_half(times(partner, rest)));
  }
};
struct Bfloats {
  using Bits = std::uint16_t;
  FEEDLINE_DEVICE static Bits times(Bits value, float factor) { return bfloat16_of(from_bfloat16(value) * factor); }
  FEEDLINE_DEVICE static Bits blend(Bits own, Bits partner, float share, float rest) {
    return bfloat16_of(from_bfloat16(times(own, share)) + from_bfloat16(times(partner, rest)));
  }
};

FEEDLINE_DEVICE inline void take(std::uint32_t bits, float* out) { *out = float_of(bits); }
FEEDLINE_DEVICE inline void take(std::uint32_t bits, std::uint16_t* out) { *out = static_cast<std::uint16_t>(bits); }
FEEDLINE_DEVICE inline void take(std::uint32_t bits, std::uint8_t* out) { *out = static_cast<std::uint8_t>(bits); }

// The position of an element in an image.
struct PixelPosition {
  std::uint32_t x, y, channel;
};

FEEDLINE_DEVICE inline bool holds(const Rectangle& box, const PixelPosition& at) {
  const auto x = static_cast<std::int32_t>(at.x), y = static_cast<std::int32_t>(at.y);
  return x >= box.left && x - box.left < box.width && y >= box.top && y - box.top < box.height;
}

FEEDLINE_DEVICE inline bool pastes(const MixedRow& row, const PixelPosition& at) {
  const auto x = static_cast<std::int32_t>(at.x), y = static_cast<std::int32_t>(at.y);
  return x >= row.left && x < row.right && y >= row.top && y < row.bottom;
}

// Writes the value of the rectangle at a position to `out`; returns false if there is no rectangle.
template <typename Bits>
FEEDLINE_DEVICE bool written_over(const PixelJob& job, const PixelRow& row, const PixelPosition& at, Bits* out) {
  FEEDLINE_ROLLED for (std::uint32_t i = row.rectangles; i > 0; --i) {
    const Rectangle& box = job.rectangles[row.first_rectangle + i - 1];
    if (!holds(box, at)) continue;
    if (box.patch == kNoPatch) {
      take(box.value[at.channel], out);
    } else {
      const auto line = static_cast<std::uint64_t>(at.channel) * static_cast<std::uint64_t>(box.height) +
                        (at.y - static_cast<std::uint32_t>(box.top));
      *out = static_cast<const Bits*>(job.patches)[box.patch + line * static_cast<std::uint64_t>(box.width) +
                                                   (at.x - static_cast<std::uint32_t>(box.left))];
    }
    return true;
  }
  return false;
}

// Returns one element from an input row, before mixing.
template <typename Bits>
FEEDLINE_DEVICE Bits element(const PixelJob& job, const Bits* tables, std::uint32_t number, const PixelPosition& at) {
  std::uint32_t x = at.x;
  if (job.inputs) {
    const PixelRow& row = job.inputs[number];
    Bits value;
    if (row.rectangles && written_over(job, row, at, &value)) return value;
    if (row.mirrored) x = job.width - 1 - x;
  }
  const std::uint64_t pixel = static_cast<std::uint64_t>(at.y) * job.width + x;
  const std::uint8_t byte = job.in[number * job.in_stride + pixel * job.channels + at.channel];
  return job.tables ? tables[at.channel * 256 + byte] : static_cast<Bits>(byte);
}

// Returns an element of an output row.
template <typename Kind>
FEEDLINE_DEVICE typename Kind::Bits mixed_element(const PixelJob& job, const typename Kind::Bits* tables,
                                                  std::uint32_t number, const PixelPosition& at) {
  if (!job.mixed) return element(job, tables, number, at);
  const MixedRow& row = job.mixed[number];
  const bool pasted = row.kind == MixedRow::kPaste && pastes(row, at);
  typename Kind::Bits value = element(job, tables, pasted ? row.partner : row.own, at);
  if (row.kind == MixedRow::kBlend)
    value = Kind::blend(value, element(job, tables, row.partner, at), row.share, row.rest);
  return value;
}

// First phase: loads the tables.
template <typename Bits>
FEEDLINE_DEVICE void fetch_tables(const PixelJob& job, std::uint32_t thread, Bits* tables) {
  if (!job.tables) return;
  FEEDLINE_ROLLED for (std::uint32_t i = thread; i < job.channels * 256; i += kThreads) tables[i] =
      static_cast<const Bits*>(job.tables)[i];
}

// Second phase: neighbouring threads write neighbouring elements.
template <typename Kind>
FEEDLINE_DEVICE void fill(const PixelJob& job, std::uint32_t block, std::uint32_t thread,
                          const typename Kind::Bits* tables) {
  const std::uint32_t pixels = job.width * job.height, units = job.planar ? pixels : pixels * job.channels;
  const std::uint32_t shares = (units + kShare - 1) / kShare, row = block / shares;
  const std::uint32_t first = (block % shares) * kShare, last = units - first < kShare ? units : first + kShare;
  auto* const out = reinterpret_cast<typename Kind::Bits*>(static_cast<std::uint8_t*>(job.out) + row * job.out_stride);
  FEEDLINE_ROLLED for (std::uint32_t unit = first + thread; unit < last; unit += kThreads) {
    const std::uint32_t pixel = job.planar ? unit : unit / job.channels;
    PixelPosition at{pixel % job.width, pixel / job.width, job.planar ? 0 : unit - pixel * job.channels};
    const std::uint32_t end = job.planar ? job.channels : at.channel + 1;
    std::uint64_t to = unit;
    FEEDLINE_ROLLED for (; at.channel < end; ++at.channel, to += pixels) out[to] =
        mixed_element<Kind>(job, tables, row, at);
  }
}

}  // namespace feedline::device::cuda

#endif  // include guard
