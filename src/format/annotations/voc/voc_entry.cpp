// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/voc/voc_entry.h"

#include "format/annotations/voc/voc_format.h"

namespace feedline::format {
namespace {

// Checks for the two folders that every VOC set has. Sends no request if format="voc" is given.
Result<bool> is_voc(const std::string& source, const storage::Storage& storage) {
  if (storage.is_remote()) return false;
  for (const char* folder : {"JPEGImages", "Annotations"}) {
    const auto is_there = storage.is_directory(storage.below(source, folder));
    if (!is_there || !*is_there) return false;
  }
  return true;
}

Result<std::shared_ptr<const Format>> open_voc(const std::string& source, const OpenOptions& options) {
  return VocFormat::open(source, options);
}

Result<Inspection> inspect_voc(const std::string& source, const OpenOptions& options) {
  return VocFormat::inspect(source, options);
}

}  // namespace

const FormatEntry& voc_entry() {
  static constexpr FormatEntry kEntry{"voc", is_voc, open_voc, inspect_voc, true};
  return kEntry;
}

}  // namespace feedline::format
