// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recognises image and audio files and image columns by their names, with the extensions of decode/image_formats.h and
// decode/audio/audio_reader.h.

#include <initializer_list>
#include <string_view>
#include <vector>

namespace feedline::format {

// Returns whether the name ends in one of ImageFolder's image extensions.
bool is_image_name(std::string_view name);
// Like is_image_name(), but also accepts the extensions of all other images that Feedline can decode, with Pillow if
// necessary.
bool is_any_image_name(std::string_view name);
// Returns whether the name ends in the extension of a format that the engine decodes itself.
bool is_native_image_name(std::string_view name);

// Returns whether the name ends in an extension of audio files.
bool is_audio_name(std::string_view name);
// Returns whether the name ends in an extension of video files.
bool is_video_name(std::string_view name);

// The extensions of formats that the engine decodes itself, without a dot.
std::vector<std::string_view> native_extensions();
// Returns the usual names of image columns in order of preference: `first`, native_extensions(), and `last`.
std::vector<std::string_view> image_column_names(std::initializer_list<std::string_view> first,
                                                 std::initializer_list<std::string_view> last = {});

}  // namespace feedline::format
