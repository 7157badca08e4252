// SPDX-License-Identifier: Apache-2.0
#pragma once

// The image formats of plugins, as further rows of the table of image formats (image_formats.h), which precede the
// others. Rows are added and never change, so that readers need no lock. Thread-safe.

#include <cstddef>
#include <span>
#include <string_view>

#include "decode/image_formats.h"

namespace feedline {
class ForeignImages;
}

namespace feedline::decode {

std::span<const ImageFormat> plugin_image_formats();
// Returns the decoder of a plugin's format, which exists until the process ends; nullptr for formats of the engine.
const ForeignImages* plugin_images_of(const ImageFormat& format);
inline constexpr std::size_t kMostPluginFormats = 64;
// Requires: there are fewer formats, calls are not concurrent, and `images` exists until the process ends.
void add_plugin_image_format(const ImageFormat& format, const ForeignImages& images);

}  // namespace feedline::decode
