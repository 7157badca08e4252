// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/voc/voc_entry.h"

#include "format/annotations/voc/voc_format.h"

namespace feedline::format {
namespace {

// Checks for the two folders that every VOC dataset has. With format="voc", accepts the source without sending a
// request.
Result<bool> is_voc(const std::string& source, const storage::Storage& storage) {
  if (storage.is_remote()) return false;
  for (const char* folder : {"JPEGImages", "Annotations"}) {
    const auto is_there = storage.is_directory(storage.below(source, folder));
    if (!is_there || !*is_there) return false;
  }
  return true;
}

}  // namespace

const FormatEntry& voc_entry() {
  static constexpr FormatEntry kEntry{"voc", is_voc, VocFormat::open, VocFormat::inspect, true};
  return kEntry;
}

}  // namespace feedline::format
