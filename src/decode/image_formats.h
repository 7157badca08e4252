// SPDX-License-Identifier: Apache-2.0
#pragma once

// The table of image formats: their names, extensions and signatures, and who decodes them. All other code looks these
// up here; Python does so through feedline/image_formats.h. Stateless and thread-safe.

#include <cstddef>
#include <span>
#include <string_view>

#include "feedline/error.h"

namespace feedline::decode {

struct ImageCodec;

// Bytes that a file of a format begins with.
struct ImageSignature {
  std::string_view bytes;
  // The extension of such a file if the signature identifies an image among values of any kind; empty if other data
  // often begins with the same bytes.
  std::string_view extension = {};
  std::size_t offset = 0;
  bool (*also)(std::string_view file) = nullptr;  // a further condition
};

struct ImageFormat {
  std::string_view name;                  // as in ImageInfo::format; for formats without a codec as in Pillow
  std::string_view title;                 // for messages
  std::string_view extensions[6] = {};    // lower case, without a dot; the usual one first, empty ones last
  std::size_t image_folder = 0;           // the number of them, from the first, that torchvision's ImageFolder reads
  ImageSignature signatures[4] = {};      // those without bytes are last
  const ImageCodec* codec = nullptr;      // nullptr: feedline/foreign_images.h decodes it
  std::string_view pillow_requires = {};  // the version or plugin of Pillow that decodes it, if not every Pillow does
  bool is_rotated_by_pillow = false;      // Pillow always applies the EXIF orientation
};

std::span<const ImageFormat> image_formats();
// Requires: a format of the table has this name.
const ImageFormat& image_format(std::string_view name);
// The format of an extension in lower case, without a dot; nullptr if no format has it.
const ImageFormat* format_of_extension(std::string_view extension);
// The format of a file, by its first bytes; nullptr if they match none.
const ImageFormat* format_of(std::span<const std::byte> file);

// Whether torchvision's ImageFolder reads files with this extension (in lower case, without a dot).
bool is_in_image_folders(std::string_view extension);

// Detects the format from the content, never from a file name. kData: not an image, or one that nothing here decodes;
// the message describes the content ("GIF images are not supported", "not an image: looks like text").
Result<const ImageFormat*> sniff(std::span<const std::byte> file);

// The usual extension of an image, without a dot, if its first kImageHead bytes identify it; else empty. Signatures
// that other data often begins with (those of PNM and of JPEG XL without a container) do not identify an image.
std::string_view image_extension(std::span<const std::byte> file);
inline constexpr std::size_t kImageHead = 12;  // "RIFF", a size, "WEBP"; a size, "ftyp", "avif"

// The extension for an image that is stored as a file: image_extension(), or "jpg" if the content is not identified,
// which decoding reports.
std::string_view extension_to_store(std::span<const std::byte> image);

}  // namespace feedline::decode
