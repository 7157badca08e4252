// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a kernel is to make of a batch of 8-bit images, as the plain struct that it gets by value. All pointers are of
// the device that runs it: the GPU's, or the host's where run_on_cpu() does. Read by two compilers, the engine's and
// CUDA's run-time one, which has no headers of its own.

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

// Of an output: bits of as many bytes as it has. kFloat16 and kBfloat16 are rounded to the nearest even.
enum class Element : std::uint32_t { kUint8, kFloat32, kFloat16, kBfloat16 };

// What is written over, in places of the output. Later ones lie on top.
struct Rectangle {
  std::int32_t left, top, width, height;
  std::uint32_t value[4];  // of each channel, as an element's bits; a narrow one's are the low ones
  std::uint64_t patch;     // or kNoPatch: place in PixelJob::patches of (channels, height, width) elements instead
};
inline constexpr std::uint64_t kNoPatch = ~std::uint64_t{0};

// A row of the input, before it is mixed.
struct PixelRow {
  std::uint32_t mirrored;  // 0 or 1: left to right
  std::uint32_t first_rectangle, rectangles;
};

// A row of the output: of the input's row `own`, mixed with another one as that is before it is mixed.
struct MixedRow {
  enum Kind : std::uint32_t {
    kNone,   // it stays as it is
    kBlend,  // own * share + partner * rest, every product and sum rounded
    kPaste,  // inside the box it is the partner
  };
  std::uint32_t own, partner, kind;
  float share, rest;
  std::int32_t left, top, right, bottom;  // right and bottom: behind the last
};

struct PixelJob {
  const std::uint8_t* in;   // rows of (height, width, channels)
  std::uint64_t in_stride;  // bytes from one row to the next
  void* out;                // `rows` of (channels, height, width) where planar, else (height, width, channels)
  std::uint64_t out_stride;
  // (channels, 256) elements: what becomes of a byte. That is how the engine defines conversion and normalisation, so
  // no arithmetic of a GPU can differ from it. nullptr: of kUint8, the byte itself.
  const void* tables;
  const PixelRow* inputs;  // of each row of the input; nullptr: nothing is mirrored or written over
  const MixedRow* mixed;   // of each row of the output; nullptr: row i is of the input's row i
  const Rectangle* rectangles;
  const void* patches;
  std::uint32_t rows;  // of the output
  std::uint32_t width, height, channels;
  std::uint32_t planar;  // 0 or 1
  std::uint32_t reserved;
};

// A change of all colours of a row, as Pillow's ImageEnhance and torchvision's adjust_hue make it.
struct KeptColour {
  enum Kind : std::uint32_t { kBrightness, kContrast, kSaturation, kHue, kGrey };
  std::uint32_t kind;
  std::uint32_t value;  // bits of the float factor; of kHue: what is added to the byte; of kGrey: nothing
};
inline constexpr unsigned kMostColours = 8;  // of a row

// What a row of bytes is made of: an image that is kept on the device, whole, as rows of its channels without gaps.
// Behind it stand, where it is resized, the weights of each column of the output and then of each row:
//   int32 first, used, then `taps` of them, of which the first `used` count
// in the fixed point of kKeptBits. Positions count from (left, top).
struct KeptRow {
  enum Flag : std::uint32_t {
    kResized = 1,
    kVerticalFirst = 2,  // which of the two passes of a resize is rounded to bytes
    kMirrored = 4,       // left to right, what comes out
    kFlipped = 8,        // upside down
  };
  // Of what lies outside of the region, as Pillow's and numpy's borders. In the order of PaddingMode.
  enum Border : std::uint32_t { kConstant, kEdge, kReflect, kSymmetric };
  std::uint64_t pixels;                   // address of the image; 0: there is none, and the row is black
  std::uint32_t stride;                   // bytes from one of its lines to the next
  std::int32_t left, top, width, height;  // the region of it that is used
  std::int32_t shift_x, shift_y;          // place in the region of the output's first pixel, where it is not resized
  std::uint32_t flags, border;
  std::uint32_t fill;  // of kConstant: a byte for each channel, the first one lowest
  std::uint32_t column_taps, row_taps;
  std::uint32_t colours;  // how many of these are done, one after the other, to what comes out
  KeptColour colour[kMostColours];
};

struct KeptJob {
  const std::uint8_t* in;  // a KeptRow for each row, and what stands behind it
  std::uint64_t in_stride;
  std::uint8_t* out;  // rows of (height, width, channels)
  std::uint64_t out_stride;
  std::uint32_t rows, width, height, channels;
};

inline constexpr int kKeptBits = 22;
inline constexpr unsigned kMostChannels = 4;
inline constexpr unsigned kThreads = 256;  // of a block
inline constexpr unsigned kShare = 4096;   // pixels (elements where not planar) of a block: a table is fetched for many

}  // namespace feedline::device::cuda
