// SPDX-License-Identifier: Apache-2.0
#include "format/sources/image_names.h"

#include <algorithm>
#include <string>

#include "decode/audio/audio_reader.h"
#include "decode/image_formats.h"
#include "feedline/foreign_images.h"
#include "format/sources/sample_name.h"

namespace feedline::format {
namespace {

std::string extension_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == name.npos ? std::string() : to_lower(name.substr(dot + 1));
}

}  // namespace

bool is_image_name(std::string_view name) { return decode::is_in_image_folders(extension_of(name)); }

bool is_any_image_name(std::string_view name) { return decode::format_of_extension(extension_of(name)) != nullptr; }

bool is_native_image_name(std::string_view name) {
  const decode::ImageFormat* const format = decode::format_of_extension(extension_of(name));
  return format != nullptr && format->codec != nullptr;
}

bool is_audio_name(std::string_view name) { return decode::is_audio_extension(extension_of(name)); }
bool is_video_name(std::string_view name) {
  const auto known = video_extensions();
  return std::ranges::find(known, extension_of(name)) != known.end();
}

std::vector<std::string_view> native_extensions() { return image_column_names({}); }

std::vector<std::string_view> image_column_names(std::initializer_list<std::string_view> first,
                                                 std::initializer_list<std::string_view> last) {
  std::vector<std::string_view> names(first);
  for (const decode::ImageFormat& format : decode::image_formats())
    for (const std::string_view extension : format.extensions)
      if (format.codec != nullptr && !extension.empty()) names.push_back(extension);
  names.insert(names.end(), last);
  return names;
}

}  // namespace feedline::format
