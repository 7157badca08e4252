// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline::format {

// Settings for annotated images, given in addition to the source. For empty settings the format's default applies.
struct AnnotationSettings {
  std::string images;  // coco: the folder that file names are relative to, as given by the user
  std::string split;   // voc: a list in ImageSets; yolo: a key of the YAML file
  std::string crowd;   // coco: "skip" skips crowd annotations, "keep" treats them like all others
};

// Parses the settings in OpenOptions::format, which follow the name of the format (possibly empty) like the query of a
// URL: "coco?images=/data/coco%20images&crowd=keep". kConfig: an unknown or repeated setting.
Result<AnnotationSettings> settings_in(std::string_view format);
// The format's name, "coco".
std::string_view name_in(std::string_view format);
// The name of the first setting given, such as "images"; empty if there is none.
std::string_view first_setting_in(std::string_view format);

}  // namespace feedline::format
