// SPDX-License-Identifier: Apache-2.0
#pragma once

// Objects written to where a URL leads: for programs that make datasets.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline {

// What is stored, as the storage tells it.
struct StoredEntry {
  std::string name;  // below the place
  std::uint64_t bytes = 0;
  std::string etag;  // changes with the object; of several parts it is no checksum
  bool is_folder = false;
};

// A folder of objects, s3:// or gs://. An object is there as a whole or not at all. Thread-safe; copies share.
class StoredPlace {
 public:
  // url: "s3://bucket/prefix". Asks nobody. kConfig: nobody writes to this scheme, or no bucket.
  static Result<StoredPlace> open(const std::string& url);
  // As it was opened, without a slash at its end.
  const std::string& url() const;
  // What lies in it, sorted by name; of a place where nothing is, nothing. kStorage: no such bucket, or no permission.
  Result<std::vector<StoredEntry>> entries() const;

  // These wait, and give the ETag of what is there then. What was there by this name is replaced. kStorage: it cannot
  // be written, after as many tries as reads take; kCancelled: cancel().
  Result<std::string> put(const std::string& name, std::span<const std::byte> bytes) const;
  // Of a local file. Large ones go in parts, four at a time, of 16 MiB or more each: 64 MiB of memory for files of up
  // to 160 GB. What was begun of one that cannot be completed is aborted.
  Result<std::string> upload(const std::string& file, const std::string& name) const;
  // Ends what waits in any thread, within seconds, and what comes later at once. For good.
  void cancel() const;

  Result<void> remove(const std::string& name) const;  // of what is not there, too
  // Aborts the uploads of these names that a killed process left: they are invisible, and cost. How many.
  Result<std::uint64_t> abort_unfinished(const std::vector<std::string>& names) const;

 private:
  struct Impl;
  explicit StoredPlace(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace feedline
