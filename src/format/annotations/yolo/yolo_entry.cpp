// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/yolo/yolo_entry.h"

#include "format/annotations/image_folder.h"
#include "format/annotations/sample_pieces.h"
#include "format/annotations/yolo/yaml_reader.h"
#include "format/annotations/yolo/yolo_format.h"
#include "format/sources/source_list.h"

namespace feedline::format {
namespace {

// Detects a YAML file by its name, and a folder by a YAML file in it that names classes. Sends no request.
Result<bool> is_yolo(const std::string& source, const storage::Storage& storage) {
  const std::string end = extension_of(source.substr(0, source.find('?')));
  if (end == "yaml" || end == "yml") return !is_list(source);
  if (storage.is_remote()) return false;
  const auto folder = storage.is_directory(source);
  if (!folder || !*folder) return false;
  const std::string yaml = find_yaml(source, storage);
  if (yaml.empty()) return false;
  const auto text = read_text(storage, yaml);
  const auto read = text ? read_yaml(*text) : Result<std::map<std::string, YamlValue>>();
  return text && read && read->contains("names") && (read->contains("train") || read->contains("val"));
}

}  // namespace

const FormatEntry& yolo_entry() {
  static constexpr FormatEntry kEntry{"yolo", is_yolo, YoloFormat::open, YoloFormat::inspect, true};
  return kEntry;
}

}  // namespace feedline::format
