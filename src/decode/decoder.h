// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes an encoded image to pixels: reads the header first, then decodes only the requested rows and columns. Pixels
// are bit-identical to those of Pillow's Image.open(...).convert(mode).

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

struct ImageFormat;     // image_formats.h
class CheckpointStore;  // jpeg/checkpoint_store.h
struct JpegOutline;     // jpeg/jpeg_part.h
struct JpegPart;

// How a file stores its pixel values. All depths except the first lose precision when converted to 8 bits, as in
// Pillow's convert(): grey values above 255 become 255, floats below 0 become 0, and colours lose their lower bits.
enum class Depth : std::uint8_t { k8Bits, k16Bits, k32Bits, kFloat };
std::string_view name_of(Depth depth);  // "8 bits", "16 bits", "32 bits", "floats"

struct ImageHeader {
  int width = 0;
  int height = 0;
  Depth depth = Depth::k8Bits;
  const ImageFormat* format = nullptr;
};

// Not thread-safe. Each thread should reuse one decoder for all samples, because a decoder reuses codec state and
// scratch memory.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;

  // Makes decode() start from checkpoints in the store for regions of JPEGs, and add checkpoints to the store; the
  // pixels do not change. nullptr, the default, means that no checkpoints are used. Requires: the store outlives the
  // last decode.
  void use_checkpoints(CheckpointStore* store);

  // Reads the header. `bytes` must stay valid until decode(), which must follow, or the next open(). Allocates nothing
  // that depends on the image size in the header. applies_exif: the image is rotated according to its EXIF orientation,
  // and width, height and regions refer to the rotated image.
  Result<ImageHeader> open(std::span<const std::byte> bytes, bool applies_exif = false);
  const ImageHeader& header() const;  // from the last open(). Requires: open() succeeded
  // Returns the format's name: "jpeg"; without a codec, Pillow's in lower case. Requires: as header().
  std::string kind() const;
  // Returns the EXIF orientation, 1 to 8, of the stored image. Requires: no decode() since open().
  int orientation() const;
  // Returns the range of a JPEG's file that decoding this region needs, or nullptr if the whole file should be read;
  // see find_jpeg_part() for the arguments. Requires: the outline's head was opened.
  std::shared_ptr<JpegPart> find_part(const Box& region, const JpegOutline& outline, bool is_same_file,
                                      const CheckpointStore& store);
  // Decodes the part's region from its file, which was opened. If that fails, the whole file must be read: the error is
  // not that of the image. `part` must stay valid until decode(), or the next open().
  void use_part(JpegPart* part);
  // Writes the pixels of `region` of the opened image to `out`, which is resized to the region (3 channels for kRgb, 1
  // for kL). kData if pixels are missing or damaged. Requires: open() succeeded and the region is inside the image.
  Result<void> decode(const Box& region, ColorMode mode, memory::PixelBuffer& out);
  // Decodes two images together, which is faster than one after the other if both are baseline JPEGs. Each image has
  // its own result. Requires: two different decoders, each ready for decode().
  struct Task {
    Box region;
    ColorMode mode;
    memory::PixelBuffer* out;
  };
  static std::array<Result<void>, 2> decode_in_turn(ImageDecoder& first, const Task& first_task, ImageDecoder& second,
                                                    const Task& second_task);
  // Decodes the region to planes if that is cheaper; each sample of a plane covers at most the given number of pixels.
  // Only some JPEGs support this. kL decodes only the luma plane. Returns false if the image does not support planes or
  // may be damaged; the caller must then call decode(). Requires: as decode().
  [[nodiscard]] bool decode_planes(const Box& region, ColorMode mode, const memory::Coarseness& most,
                                   memory::Planes& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::decode
