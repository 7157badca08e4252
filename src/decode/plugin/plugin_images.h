// SPDX-License-Identifier: Apache-2.0
#pragma once

// Image codecs of plugins. They are rows of the table of image formats (image_formats.h).

#include "feedline/error.h"
#include "feedline/plugin/plugin.h"

namespace feedline::decode {

// Checks the name, magic bytes and functions. kConfig: one is missing or invalid, or a codec of the engine or of
// another plugin reads these files.
Result<void> check_plugin(const feedline_codec_v1& codec);
// Requires: check_plugin() succeeded for the same codec, and no codec was added since.
void add_plugin(const feedline_codec_v1& codec);

}  // namespace feedline::decode
