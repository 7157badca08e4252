// SPDX-License-Identifier: Apache-2.0
#pragma once

// Each format has a folder with an entry, which detects, opens and inspects sources. registry/registry.cpp lists the
// entries.

#include <memory>
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
  // These functions are like those in format.h, but do not add the source to errors. Requires: options.storage is set.
  Result<std::shared_ptr<const Format>> (*open)(const std::string& source, const OpenOptions& options);
  Result<Inspection> (*inspect)(const std::string& source, const OpenOptions& options);
  bool has_annotations = false;  // accepts OpenOptions::annotations
  // Checks whether a file in a remote folder has a shard's name. nullptr if such folders are detected in a different
  // way.
  bool (*names_shard)(std::string_view name) = nullptr;
  bool has_documents = false;  // accepts OpenOptions::documents
};

}  // namespace feedline::format
