// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes objects to a URL, for programs that create datasets.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline {

// Properties of an object as reported by the storage.
struct StoredEntry {
  std::string name;  // relative to the folder
  std::uint64_t bytes = 0;
  std::string etag;  // changes with the object; not a checksum for multipart uploads
  bool is_folder = false;
};

// A folder of objects, s3:// or gs://. Objects appear atomically. Thread-safe; copies share state.
class StoredPlace {
 public:
  // url: "s3://bucket/prefix". Sends no request. kConfig: the scheme has no write support, or the bucket is missing.
  static Result<StoredPlace> open(const std::string& url);
  // The URL as passed to open(), without a trailing slash.
  const std::string& url() const;
  // Lists the objects, sorted by name; empty if the prefix has none. kStorage: the bucket does not exist, or permission
  // is denied.
  Result<std::vector<StoredEntry>> entries() const;

  // The following functions block, replace any object with this name, and return the new object's ETag. kStorage:
  // writing failed after all retries, as many as for reads. kCancelled: cancel() was called.
  Result<std::string> put(const std::string& name, std::span<const std::byte> bytes) const;
  // Uploads a local file. Large files are sent in parts of at least 16 MiB, four at a time: 64 MiB of memory for files
  // of up to 160 GB. An upload that cannot be completed is aborted.
  Result<std::string> upload(const std::string& file, const std::string& name) const;
  // Cancels calls in progress in all threads within seconds, and later calls at once. Permanent.
  void cancel() const;

  Result<void> remove(const std::string& name) const;  // Also succeeds if the object does not exist.
  // Aborts uploads of these names left by killed processes, which are invisible but incur costs. Returns their number.
  Result<std::uint64_t> abort_unfinished(const std::vector<std::string>& names) const;

 private:
  struct Impl;
  explicit StoredPlace(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace feedline
