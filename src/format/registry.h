// SPDX-License-Identifier: Apache-2.0
#pragma once

// The formats that a source can have. A format stands in a folder of its own, whose entry says how to tell it, open it
// and look at it; registry.cpp lists the entries.

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
  std::string_view name;  // what format= calls it
  // Is the source one of these? Asked where the user does not say, of one entry after the other; the first yes counts.
  // An error: it cannot be told, and opening fails with it.
  Result<bool> (*sniff)(const std::string& source, const storage::Storage& storage);
  // As the functions of format.h, which give the error its source. Requires: options.storage.
  Result<std::shared_ptr<const Format>> (*open)(const std::string& source, const OpenOptions& options);
  Result<Inspection> (*inspect)(const std::string& source, const OpenOptions& options);
  bool has_settings = false;  // annotations/settings.h
  // Does a file in a remote folder have the name of a shard? nullptr: such folders are recognised otherwise.
  bool (*names_shard)(std::string_view name) = nullptr;
};

// In the order in which they are asked.
std::span<const FormatEntry* const> entries();

}  // namespace feedline::format
