// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// The version of a volume's file when its header was read. Immutable and thread-safe.
class OpenedVersion {
 public:
  OpenedVersion(std::shared_ptr<const storage::Storage> storage, std::string path, storage::Version version);

  const std::string& path() const { return path_; }
  // kStorage: a local file has been changed or replaced since. Reads of remote objects compare versions themselves.
  Result<void> check() const;
  // Identifies the file, its version, and an array in it.
  std::uint64_t key(std::string_view array = {}) const;

 private:
  std::shared_ptr<const storage::Storage> storage_;
  std::string path_;
  storage::Version version_;
};

}  // namespace feedline::format
