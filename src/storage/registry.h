// SPDX-License-Identifier: Apache-2.0
#pragma once

// Selects the storage for a path or URL by its scheme.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::storage {

// An object or a folder, and its storage.
struct Location {
  std::shared_ptr<const Storage> storage;
  std::string object;  // the storage's name for it
};

// Maps schemes to storage backends. The constructor fills the table, so nothing depends on the order of initialization.
// Do not modify the table while other threads use it.
class Registry {
 public:
  // url: as written by the user, including its scheme. kConfig: the URL is not valid for this scheme.
  using Open = Result<Location> (*)(std::string_view url);
  // scheme: in lower case, without "://".
  void add(std::string_view scheme, Open reader) { schemes_.insert_or_assign(std::string(scheme), reader); }
  // Text without a scheme is a local path and is used unchanged. An unknown scheme is passed to a foreign storage if
  // there is one (foreign/foreign_storage.h). kConfig: the scheme is not supported; the error names libraries that
  // could read it and how to register them. Does not check whether the object exists.
  Result<Location> open(const std::string& url) const;
  bool has(std::string_view scheme) const { return schemes_.contains(scheme); }

 private:
  std::string known() const;
  std::map<std::string, Open, std::less<>> schemes_;
};

// Returns the schemes that this version can read without other libraries.
Registry built_in_schemes();
// Like Registry::open(), with the built-in schemes.
Result<Location> open(const std::string& url);

// Returns the scheme in lower case, such as "s3" for "s3://bucket/key"; empty for a path.
std::string scheme_of(std::string_view url);
// Returns the same text for every spelling of the location, with or without a scheme, whether or not it exists (see
// Storage::identity()). URLs with unsupported schemes are returned unchanged.
std::string identity_of(const std::string& url);

}  // namespace feedline::storage
