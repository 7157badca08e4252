// SPDX-License-Identifier: Apache-2.0
#pragma once

// Interface between ImageDecoder and the image formats. The contract is that of ImageDecoder, which selects the codec.
// To add a format, add a folder with its Codec and its ImageCodec, and a row in image_formats.cpp.

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "decode/decode_cost.h"
#include "decode/decoder.h"

namespace feedline::decode {

// The arguments of decode().
using PixelTask = ImageDecoder::Task;

class Codec {
 public:
  virtual ~Codec() = default;

  // Reads the header, but does not set its format. Allocates nothing that depends on the header's width and height.
  virtual Result<ImageHeader> open(std::span<const std::byte> bytes) = 0;
  // `out` already has the region's size and the mode's channels. Requires: the last open() succeeded, decode() has not
  // been called since, and the region is inside the image.
  virtual Result<void> decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) = 0;
  virtual bool decode_planes(const Box&, ColorMode, const memory::Coarseness&, memory::Planes&) { return false; }
  // See ImageDecoder.
  virtual void use_checkpoints(CheckpointStore*) {}
  virtual std::shared_ptr<JpegPart> find_part(const Box&, const JpegOutline&, bool, const CheckpointStore&) {
    return nullptr;
  }
  virtual void use_part(JpegPart*) {}
  // Decodes two images together, or one after the other if that is not faster. Requires: both tasks meet the conditions
  // of decode(), and `other` is another codec of the same format.
  virtual std::array<Result<void>, 2> decode_pair(const PixelTask& task, Codec& other, const PixelTask& other_task) {
    return {decode(task.region, task.mode, *task.out),
            other.decode(other_task.region, other_task.mode, *other_task.out)};
  }
};

// Functions for a format that the engine decodes. The functions are stateless and thread-safe, read only the first
// bytes, and accept damaged files. Requires: the file begins with one of the format's signatures.
struct ImageCodec {
  std::unique_ptr<Codec> (*make)();
  // Returns the size in the header without validating it; nullopt if the first bytes do not contain the size.
  std::optional<Size> (*read_size)(std::span<const std::byte> file);
  // Returns the EXIF data, a TIFF file that "Exif\0\0" may precede; empty if there is none.
  std::span<const std::byte> (*find_exif)(std::span<const std::byte> file);
  // Returns how the image is stored, in the terms and order of ImageTraits::stored.
  std::vector<std::string_view> (*read_traits)(std::span<const std::byte> file);
  // Returns "RGB" or "L" if Pillow opens the image in that mode, else an empty string.
  std::string_view (*pillow_mode)(std::span<const std::byte> file);
  DecodeCosts costs;
};

inline constexpr int channels_of(ColorMode mode) { return mode == ColorMode::kRgb ? 3 : 1; }

// Returns kData if images of this size are not supported.
Result<void> check_size(std::int64_t width, std::int64_t height);
std::unexpected<Error> decode_error(std::string what);

}  // namespace feedline::decode
