// SPDX-License-Identifier: Apache-2.0
#pragma once

// From what a user writes to the storage that reads it: a path, or a URL by its scheme.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::storage {

// An object, or a folder of them, in its storage.
struct Location {
  std::shared_ptr<const Storage> storage;
  std::string object;  // what the storage calls it
};

// Which schemes are read, and by whom: a table that is filled where it is made, so that nothing depends on which parts
// of a program were started first. Not to be added to while others use it.
class Registry {
 public:
  // url: as the user wrote it, with its scheme. kConfig: it is no URL of this scheme.
  using Open = Result<Location> (*)(std::string_view url);
  // scheme: in lower case, without "://".
  void add(std::string_view scheme, Open reader) { schemes_.insert_or_assign(std::string(scheme), reader); }
  // What has no scheme is a path of this machine, to the byte. A scheme that is not here is a foreign storage's, where
  // there is one (foreign/foreign_storage.h). kConfig: nobody reads it; the error says who could, and what to do. Reads
  // nothing: whether the object is there is not known.
  Result<Location> open(const std::string& url) const;

 private:
  std::string known() const;
  std::map<std::string, Open, std::less<>> schemes_;
};

// The schemes of this version: file, http, https, s3, gs.
Registry built_in_schemes();
// open() by the built-in schemes.
Result<Location> open(const std::string& url);

// Empty: it has none, and is a path. "s3" of "s3://bucket/key"; schemes are the same in upper case.
std::string scheme_of(std::string_view url);
// The same for every way to write the place, with or without a scheme, whether it is there or not: see
// Storage::identity(). Of what nobody reads, as it is written.
std::string identity_of(const std::string& url);

}  // namespace feedline::storage
