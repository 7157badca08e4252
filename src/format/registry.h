// SPDX-License-Identifier: Apache-2.0
#pragma once

// The formats that a source can have. Each format has its own folder, with an entry that detects, opens and inspects
// sources; registry.cpp lists the entries.

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "feedline/error.h"
#include "feedline/inspection.h"
#include "format/format.h"
#include "storage/storage.h"

namespace feedline::format {

struct FormatEntry {
  std::string_view name;  // the value of format=
  // Detects whether the source has this format. If the user does not specify a format, the entries are tried in order
  // until one returns true. An error means that detection failed, and makes opening fail.
  Result<bool> (*sniff)(const std::string& source, const storage::Storage& storage);
  // Like the functions in format.h, which add the source to the error. Requires: options.storage is set.
  Result<std::shared_ptr<const Format>> (*open)(const std::string& source, const OpenOptions& options);
  Result<Inspection> (*inspect)(const std::string& source, const OpenOptions& options);
  bool has_annotations = false;  // accepts OpenOptions::annotations
  // Checks whether a file in a remote folder has the name of a shard. nullptr if such folders are detected otherwise.
  bool (*names_shard)(std::string_view name) = nullptr;
};

// In the order of detection.
std::span<const FormatEntry* const> entries();

}  // namespace feedline::format
