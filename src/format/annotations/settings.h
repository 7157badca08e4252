// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline::format {

// What is said of annotated images beside their source; empty: nothing is, and what the format's README says holds.
struct AnnotationSettings {
  std::string images;  // coco: the folder that file names are relative to, as the user wrote it
  std::string split;   // voc: a list of ImageSets; yolo: a key of the YAML file
  std::string crowd;   // coco: "skip" leaves out annotations of crowds, "keep" takes them as all others
};

// Settings stand in OpenOptions::format behind the name of the format, which may be empty, as the query of a URL does:
// "coco?images=/data/coco%20images&crowd=keep". kConfig: a setting that is not known, or comes twice.
Result<AnnotationSettings> settings_in(std::string_view format);
// "coco"
std::string_view name_in(std::string_view format);
// "images" of the settings that are said; empty: none is.
std::string_view first_setting_in(std::string_view format);

}  // namespace feedline::format
