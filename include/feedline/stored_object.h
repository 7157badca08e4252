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

// A folder of objects at an s3:// or gs:// URL. Objects become visible atomically. Thread-safe. Copies share state.
class ObjectFolder {
 public:
  // url: "s3://bucket/prefix". Does not send a request. Fails with kConfig if the scheme does not support writing or
  // `url` has no bucket.
  static Result<ObjectFolder> open(const std::string& url);
  // The URL as passed to open(), without a trailing slash.
  const std::string& url() const;
  // Lists the objects under the prefix, sorted by name. Fails with kStorage if the bucket does not exist or permission
  // is denied.
  Result<std::vector<StoredEntry>> entries() const;

  // put() and upload() block, replace an existing object named `name`, and return the new object's ETag. Both fail with
  // kStorage if writing still fails after the same number of retries as for reads, and with kCancelled after cancel().
  Result<std::string> put(const std::string& name, std::span<const std::byte> bytes) const;
  // Uploads a local file. Large files are sent in parts of at least 16 MiB, four at a time. Files of up to 160 GB need
  // 64 MiB of memory. An upload that cannot be completed is aborted.
  Result<std::string> upload(const std::string& file, const std::string& name) const;
  // Cancels calls in progress in all threads within seconds. All later calls fail immediately.
  void cancel() const;

  Result<void> remove(const std::string& name) const;  // Also succeeds if the object does not exist.
  // Aborts uploads to these names that killed processes did not finish. Such uploads are not visible but incur costs.
  // Returns the number of aborted uploads.
  Result<std::uint64_t> abort_unfinished(const std::vector<std::string>& names) const;

 private:
  struct Impl;
  explicit ObjectFolder(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace feedline
