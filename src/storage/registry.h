// SPDX-License-Identifier: Apache-2.0
#pragma once

// Selects the storage for the user's path or URL by its scheme.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::storage {

// An object or a folder in its storage.
struct Location {
  std::shared_ptr<const Storage> storage;
  std::string object;  // the storage's name for it
};

// Maps schemes to storage backends. The table is filled on construction, so nothing depends on initialisation order. Do
// not modify it while others use it.
class Registry {
 public:
  // url: as written by the user, with its scheme. kConfig: not a valid URL of this scheme.
  using Open = Result<Location> (*)(std::string_view url);
  // scheme: in lower case, without "://".
  void add(std::string_view scheme, Open reader) { schemes_.insert_or_assign(std::string(scheme), reader); }
  // Text without a scheme is a local path, byte for byte. An unknown scheme belongs to a foreign storage if there is
  // one (foreign/foreign_storage.h). kConfig: unsupported; the error names possible readers and the remedy. Does not
  // check whether the object exists.
  Result<Location> open(const std::string& url) const;

 private:
  std::string known() const;
  std::map<std::string, Open, std::less<>> schemes_;
};

// The schemes that this version reads by itself.
Registry built_in_schemes();
// open() with the built-in schemes.
Result<Location> open(const std::string& url);

// Returns the scheme in lower case, such as "s3" for "s3://bucket/key"; empty for a path.
std::string scheme_of(std::string_view url);
// The same for every spelling of the location, with or without a scheme, whether or not it exists: see
// Storage::identity(). Unsupported schemes are returned as written.
std::string identity_of(const std::string& url);

}  // namespace feedline::storage
