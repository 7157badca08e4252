// SPDX-License-Identifier: Apache-2.0
#include "format/folder/folder_entry.h"

#include <utility>

#include "format/folder/folder_format.h"
#include "format/folder/pattern_format.h"
#include "format/tar/tar_entry.h"
#include "format/tfrecord/tfrecord_entry.h"

namespace feedline::format {
namespace {

Result<bool> is_folder(const std::string& source, const storage::Storage& storage) {
  const auto folder = storage.is_directory(source);
  if (!folder || !*folder) return false;
  for (const FormatEntry* entry : {&tfrecord_entry(), &tar_entry()})  // a folder of shards
    if (!storage.is_remote() && entry->sniff(source, storage).value_or(false)) return false;
  return true;
}

Result<void> check_folder(const std::string& source, const storage::Storage& storage) {
  FEEDLINE_TRY(const bool folder, storage.is_directory(source));
  if (folder) return {};
  return config_error("'" + source + "' is a file; format \"folder\" reads a folder of class folders");
}

Result<std::shared_ptr<const Format>> open_folder(const std::string& source, const OpenOptions& options) {
  FEEDLINE_CHECK_OK(check_folder(source, *options.storage));
  if (!options.fields.empty()) return PatternFormat::open(source, options);
  return FolderFormat::open(source, options);
}

Result<Inspection> inspect_folder(const std::string& source, const OpenOptions& options) {
  FEEDLINE_CHECK_OK(check_folder(source, *options.storage));
  if (!options.fields.empty()) return PatternFormat::inspect(source, options);
  return FolderFormat::inspect(source, options);
}

}  // namespace

const FormatEntry& folder_entry() {
  static constexpr FormatEntry kEntry{"folder", is_folder, open_folder, inspect_folder};
  return kEntry;
}

}  // namespace feedline::format
