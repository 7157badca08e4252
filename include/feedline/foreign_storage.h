// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads objects for which the engine has no reader through a library of the user, selected by URL scheme.

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

// Immutable and thread-safe: many engine threads call it concurrently, without holding locks, and block. URLs are as
// written by the user. Does not throw.
class ForeignStorage {
 public:
  virtual ~ForeignStorage() = default;
  virtual std::string explain() const = 0;  // describes the library in one line
  // kStorage; with ENOENT if the object does not exist.
  virtual Result<ForeignObject> stat(const std::string& url) const = 0;
  // Fills `out` from `offset`. Returns fewer bytes than requested at the end of the object.
  virtual Result<std::size_t> read(const std::string& url, std::uint64_t offset, std::span<std::byte> out) const = 0;
  // Lists a folder's contents, in any order; if `all`, recursively and without the folders themselves. Empty if the
  // folder does not exist.
  virtual Result<std::vector<ForeignObject>> list(const std::string& url, bool all) const = 0;
};

// Returns the storage for a scheme ("az"); nullptr if there is none. kConfig: the scheme is supported, but a required
// package is missing.
using FindForeignStorage = std::function<Result<std::shared_ptr<const ForeignStorage>>(const std::string& scheme)>;
// Sets the function that returns storage backends. The engine calls it once per scheme that has no native reader, and
// caches the backends. Set the function once per process, before opening anything.
void set_foreign_storages(FindForeignStorage find);

}  // namespace feedline
