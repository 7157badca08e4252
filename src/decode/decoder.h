// SPDX-License-Identifier: Apache-2.0
#pragma once

// Encoded image to pixels. Header first, then only the rows and columns that are asked for; the pixels are those
// that Pillow's Image.open(...).convert(mode) gives, bit for bit.

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "feedline/error.h"
#include "feedline/operation.h"
#include "memory/pixels.h"
#include "memory/planes.h"

namespace feedline::decode {

enum class ImageFormat : std::uint8_t { kJpeg, kPng, kWebp, kForeign };  // kForeign: feedline/foreign_images.h
std::string_view name_of(ImageFormat format);

// How a file stores pixel values. All but the first lose values when they become 8 bits, as in Pillow's convert(): grey
// values above 255 become 255, floats below 0 become 0, colours lose their lower bits.
enum class Depth : std::uint8_t { k8Bits, k16Bits, k32Bits, kFloat };
std::string_view name_of(Depth depth);  // "8 bits", "16 bits", "32 bits", "floats"

struct ImageHeader {
  ImageFormat format = ImageFormat::kJpeg;
  int width = 0;
  int height = 0;
  Depth depth = Depth::k8Bits;
};

// By content, never by name. kData names what it looks like instead ("a GIF image", "text", "an empty file").
Result<ImageFormat> sniff(std::span<const std::byte> bytes);

// The usual extension of an image format, without a dot, if the first kImageHead bytes identify it; else empty.
// Signatures that other data often begins with (those of PNM and of JPEG XL without a container) do not identify a
// format.
std::string_view image_extension(std::span<const std::byte> bytes);
inline constexpr std::size_t kImageHead = 12;  // "RIFF", a size, "WEBP"; a size, "ftyp", "avif"

// A thread keeps one decoder and uses it for every sample: codec state and scratch memory are reused.
// Not for several threads at once.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;

  // Reads the header and holds on to `bytes` until the decode() that must follow, or the next open().
  // Allocates nothing that depends on the header's width and height. applies_exif: the image is turned as its EXIF
  // orientation says, and width, height and regions are those of the turned one.
  Result<ImageHeader> open(std::span<const std::byte> bytes, bool applies_exif = false);
  const ImageHeader& header() const;  // of the last open(). Requires: it succeeded
  std::string kind() const;           // likewise, in lower case: "jpeg", "png", "webp", or whatever another is called
  // Likewise: EXIF orientation, 1 to 8, of the stored image. Requires: no decode() since open().
  int orientation() const;
  // Pixels of `region` of the opened image into `out` (resized to the region's size; 3 channels for kRgb, 1 for
  // kL). kData when pixels are missing or damaged. Requires: open() succeeded and region lies inside the image.
  Result<void> decode(const Box& region, ColorMode mode, memory::PixelBuffer& out);
  // decode() of two images in one go, which takes less time than one after the other where both are plain JPEGs. Each
  // has its own result. Requires: as decode(), for both; they are two decoders.
  struct Task {
    Box region;
    ColorMode mode;
    memory::PixelBuffer* out;
  };
  static std::array<Result<void>, 2> decode_in_turn(ImageDecoder& first, const Task& first_task, ImageDecoder& second,
                                                    const Task& second_task);
  // The region as planes, each of whose samples stands for at most that many pixels, where the image can be had so for
  // less work: some JPEGs. kL takes brightness alone. False: not this image, or something about it is doubtful;
  // decode() must follow. Requires: as decode().
  [[nodiscard]] bool decode_planes(const Box& region, ColorMode mode, const memory::Coarseness& most,
                                   memory::Planes& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::decode
