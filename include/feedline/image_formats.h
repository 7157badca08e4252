// SPDX-License-Identifier: Apache-2.0
#pragma once

// The image formats that Feedline recognises, for bindings, documentation and tools.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace feedline {

struct ImageFormatDescription {
  std::string_view name;                                  // as in ImageInfo::format: "jpeg", "gif"
  std::string_view title;                                 // for readers: "JPEG 2000"
  std::vector<std::string_view> extensions;               // lower case, without a dot, the usual one first
  std::vector<std::string_view> image_folder_extensions;  // those that torchvision's ImageFolder reads
  bool is_native = false;                                 // decoded by the engine; else by foreign_images.h
  std::string_view pillow_requires;   // the version or plugin of Pillow that decodes it; empty if all do
  bool is_rotated_by_pillow = false;  // Pillow always applies the EXIF orientation
};

// Returns all formats, beginning with those that the engine decodes itself.
std::vector<ImageFormatDescription> image_formats();
// Returns the name of the image's format, determined from its first bytes, or an empty string if it is unknown.
std::string_view image_format_of(std::span<const std::byte> encoded);
// Returns the image's mode in Pillow, "RGB" or "L", determined from the header. Returns an empty string for other
// modes, and for formats that the engine does not decode.
std::string_view pillow_mode_of(std::span<const std::byte> encoded);

}  // namespace feedline
