// SPDX-License-Identifier: Apache-2.0
#pragma once

// The table of image formats: their names, extensions, signatures and decoders. All other code looks up formats in this
// table; Python does so through feedline/image_formats.h. Stateless and thread-safe.

#include <cstddef>
#include <span>
#include <string_view>

#include "feedline/error.h"

namespace feedline::decode {

struct ImageCodec;

// Bytes at the start of files in a format.
struct ImageSignature {
  std::string_view bytes;
  // The file extension of this signature, if the signature alone identifies an image; empty if other data often begins
  // with the same bytes.
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
// Requires: the table has a format with this name.
const ImageFormat& image_format(std::string_view name);
// Returns the format with this extension (lower case, without a dot), or nullptr if there is none.
const ImageFormat* format_of_extension(std::string_view extension);
// Returns the format whose signature matches the first bytes, or nullptr if none does.
const ImageFormat* format_of(std::span<const std::byte> file);

// Returns whether torchvision's ImageFolder reads files with this extension (lower case, without a dot).
bool is_in_image_folders(std::string_view extension);

// Detects the format from the content, never from a file name. kData: the content is not an image, or no decoder
// supports it. The message describes the content ("GIF images are not supported", "not an image: looks like text").
Result<const ImageFormat*> sniff(std::span<const std::byte> file);

// Returns the usual extension of an image, without a dot, if its first kImageHead bytes identify the format, else an
// empty string. Signatures that other data often begins with (PNM, and JPEG XL without a container) do not count.
std::string_view image_extension(std::span<const std::byte> file);
inline constexpr std::size_t kImageHead = 12;  // "RIFF", a size, "WEBP"; a size, "ftyp", "avif"

// Returns the extension for storing an image as a file: image_extension(), or "jpg" if the format is not identified,
// since decoding reports the error.
std::string_view extension_to_store(std::span<const std::byte> image);

}  // namespace feedline::decode
