// SPDX-License-Identifier: Apache-2.0
#pragma once

// Image codecs of plugins. They are rows of the table of image formats (image_formats.h), which are copied from the
// plugin's structs and exist until the process ends. check_plugin() and add_plugin() are called by the one thread that
// registers a plugin (plugin/loading.cpp); the other functions are thread-safe.

#include <span>
#include <string>

#include "feedline/error.h"
#include "feedline/plugin/plugin.h"

namespace feedline::decode {

// Checks the name, magic bytes and functions. kConfig: one is missing or invalid, or a codec of the engine or of a
// plugin reads these files. others: codecs of the same plugin, which were checked but not added yet.
Result<void> check_plugin(const feedline_codec_v1& codec, std::span<const feedline_codec_v1> others);
// Requires: check_plugin() succeeded for the same codec.
void add_plugin(const feedline_codec_v1& codec);

// Returns the names and versions of all codecs of plugins, for keys of cached pixels: "qoi 1.0, raw8 2.1".
std::string plugin_codecs();
// Returns the extensions that codecs of plugins add to folders of images: "qoi, raw8".
std::string plugin_image_extensions();

}  // namespace feedline::decode
