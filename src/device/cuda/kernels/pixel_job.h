// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes a kernel's work on a batch of 8-bit images, as a plain struct that is passed by value. All pointers are
// addresses on the executing device: the GPU, or the host for run_on_cpu(). Two compilers read this file: the engine's,
// and CUDA's run-time compiler, which has no standard headers.

#ifdef __CUDACC_RTC__
namespace std {
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
}  // namespace std
#else
#include <cstdint>
#endif

namespace feedline::device::cuda {

// The type of the output elements. Values of kFloat16 and kBfloat16 are rounded to nearest even.
enum class Element : std::uint32_t { kUint8, kFloat32, kFloat16, kBfloat16 };

// A rectangle to overwrite, in pixel coordinates of the output. Later rectangles overwrite earlier ones.
struct Rectangle {
  std::int32_t left, top, width, height;
  std::uint32_t value[4];  // for each channel, the bits of an element, in the low bits if it is narrower
  std::uint64_t patch;     // or kNoPatch: offset in PixelJob::patches of (channels, height, width) elements
};
inline constexpr std::uint64_t kNoPatch = ~std::uint64_t{0};

// An input row, before mixing.
struct PixelRow {
  std::uint32_t mirrored;  // 0 or 1: left to right
  std::uint32_t first_rectangle, rectangles;
};

// An output row: the input row `own` mixed with the input row `partner`.
struct MixedRow {
  enum Kind : std::uint32_t {
    kNone,   // unchanged
    kBlend,  // own * share + partner * rest, with every product and sum rounded
    kPaste,  // the partner's pixels inside the box
  };
  std::uint32_t own, partner, kind;
  float share, rest;
  std::int32_t left, top, right, bottom;  // right and bottom are exclusive
};

struct PixelJob {
  const std::uint8_t* in;   // rows of (height, width, channels)
  std::uint64_t in_stride;  // bytes between rows
  void* out;                // `rows` of (channels, height, width) if planar, else (height, width, channels)
  std::uint64_t out_stride;
  // A table of (channels, 256) elements: the value of each byte. The engine uses the same tables for conversion and
  // normalization, so the GPU's arithmetic cannot differ. nullptr for kUint8, which copies the bytes.
  const void* tables;
  const PixelRow* inputs;  // for each row of the input; nullptr if no row is mirrored or has rectangles
  const MixedRow* mixed;   // for each row of the output; nullptr if row i is the input's row i
  const Rectangle* rectangles;
  const void* patches;
  std::uint32_t rows;  // of the output
  std::uint32_t width, height, channels;
  std::uint32_t planar;  // 0 or 1
  std::uint32_t reserved;
};

// A colour change for all pixels in a row, like Pillow's ImageEnhance and torchvision's adjust_hue.
struct ColourChange {
  enum Kind : std::uint32_t { kBrightness, kContrast, kSaturation, kHue, kGrey };
  std::uint32_t kind;
  std::uint32_t value;  // bits of the float factor; kHue: the value to add to the byte; kGrey: unused
};
inline constexpr unsigned kMostColours = 8;  // per row

// The source for a row of bytes: a whole image cached on the device, stored contiguously with interleaved channels. If
// the image is resized, this struct is followed by the weights for each output column and then for each output row:
// int32 first, int32 used, then `taps` weights in fixed point (kWeightBits), of which only the first `used` are
// applied. Positions are relative to (left, top).
struct CachedRow {
  enum Flag : std::uint32_t {
    kResized = 1,
    kVerticalFirst = 2,  // order of the two passes of a resize: the first is rounded to bytes
    kMirrored = 4,       // output is flipped left to right
    kFlipped = 8,        // output is upside down
  };
  // How pixels outside the region are filled, like the padding modes of Pillow and NumPy. The values have the same
  // order as in PaddingMode.
  enum Border : std::uint32_t { kConstant, kEdge, kReflect, kSymmetric };
  std::uint64_t pixels;                   // address of the image; 0 if there is none, then the row is black
  std::uint32_t stride;                   // bytes between its lines
  std::int32_t left, top, width, height;  // the region that is used
  std::int32_t shift_x, shift_y;          // position in the region of the output's first pixel, if it is not resized
  std::uint32_t flags, border;
  std::uint32_t fill;  // for kConstant: a byte per channel, the first one lowest
  std::uint32_t column_taps, row_taps;
  std::uint32_t colours;  // number of colour changes applied to the output, in order
  ColourChange colour[kMostColours];
};

struct CachedRowsJob {
  const std::uint8_t* in;  // a CachedRow for each row, with its weights
  std::uint64_t in_stride;
  std::uint8_t* out;  // rows of (height, width, channels)
  std::uint64_t out_stride;
  std::uint32_t rows, width, height, channels;
};

inline constexpr int kWeightBits = 22;
inline constexpr unsigned kMostChannels = 4;
inline constexpr unsigned kThreads = 256;  // per block
inline constexpr unsigned kShare = 4096;   // pixels (elements if not planar) per block: many share one table load

}  // namespace feedline::device::cuda
