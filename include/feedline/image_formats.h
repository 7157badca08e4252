// SPDX-License-Identifier: Apache-2.0
#pragma once

// The image formats that Feedline recognises: for bindings, documentation and tools.

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

// All formats, those that the engine decodes first.
std::vector<ImageFormatDescription> image_formats();
// The name of an image's format, by its first bytes; empty if it is unknown.
std::string_view image_format_of(std::span<const std::byte> encoded);
// The mode of the image in Pillow, "RGB" or "L", by its header; empty if it is another one, unknown, or the engine does
// not decode the format.
std::string_view pillow_mode_of(std::span<const std::byte> encoded);

}  // namespace feedline
