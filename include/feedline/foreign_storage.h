// SPDX-License-Identifier: Apache-2.0
#pragma once

// Uses a library that the user has installed to read objects for which the engine has no reader. The URL scheme selects
// the library.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline {

struct ForeignObject {
  std::string path;  // in a listing: relative to its folder
  std::uint64_t bytes = 0;
  std::uint64_t tag = 0;  // differs for every version of the object; 0 if unknown
  bool is_folder = false;
};

// Immutable and thread-safe: engine threads call it concurrently, without holding locks. Calls may block. URLs are
// passed as the user wrote them. Does not throw.
class ForeignStorage {
 public:
  virtual ~ForeignStorage() = default;
  virtual std::string explain() const = 0;  // describes the library in one line
  // Fails with kStorage, and with ENOENT if the object does not exist.
  virtual Result<ForeignObject> stat(const std::string& url) const = 0;
  // Reads from `offset` into `out`, and returns the number of bytes. Fewer bytes than requested are returned only at
  // the end of the object.
  virtual Result<std::size_t> read(const std::string& url, std::uint64_t offset, std::span<std::byte> out) const = 0;
  // Lists a folder's contents in any order. With `all`, lists recursively and omits the folders themselves. Returns an
  // empty list if the folder does not exist.
  virtual Result<std::vector<ForeignObject>> list(const std::string& url, bool all) const = 0;
};

// Returns the storage for a scheme such as "az", or nullptr if there is none. Fails with kConfig if the scheme is
// supported but a required package is missing.
using FindForeignStorage = std::function<Result<std::shared_ptr<const ForeignStorage>>(const std::string& scheme)>;
// Sets the function that returns storage backends. The engine calls this function once per scheme that has no native
// reader, and caches the backends. Call set_foreign_storages() once per process, before opening anything.
void set_foreign_storages(FindForeignStorage find);

}  // namespace feedline
