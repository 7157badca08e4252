// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the stored objects of a source as bytes, for programs that copy or verify a dataset without reading samples.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"

namespace feedline {

// One object, open for reading from any thread. Movable, not copyable.
class StoredObject {
 public:
  StoredObject(StoredObject&&) noexcept;
  StoredObject& operator=(StoredObject&&) noexcept;
  ~StoredObject();

  std::uint64_t bytes() const;
  // A number that changes with the object, derived from its modification time and version.
  std::uint64_t stamp() const;
  // Reads from `offset` into `out`, and returns the number of bytes. Fails with kStorage if reading fails or the object
  // has changed.
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) const;
  // Fails with kStorage if the object has changed since it was opened.
  Result<void> check_unchanged() const;

 private:
  friend class StoredSource;
  struct Impl;
  explicit StoredObject(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Thread-safe. Copies share state.
class StoredSource {
 public:
  // Opens paths or URLs, joined by "::", with braces and wildcards as in feedline::open(). Lists folders only to expand
  // wildcards. Fails with kConfig for unknown schemes, a mixture of storage backends, unbalanced braces, and patterns
  // without matches.
  static Result<StoredSource> open(const std::string& source);
  // The shards in order, or one folder. Braces and wildcards are expanded, and secrets are removed from URLs.
  const std::vector<std::string>& names() const;
  // Returns a source in which each folder of tar files that `feedline pack` wrote is replaced by its shards. Fails with
  // kConfig if packing did not finish, with kData if a manifest is damaged, and with kStorage if a manifest cannot be
  // read.
  Result<StoredSource> shards() const;
  bool is_remote() const;
  Result<bool> is_folder(const std::string& name) const;
  // Opens an object. `name` is one of names(), or an object in one of these folders.
  Result<StoredObject> object(const std::string& name) const;

 private:
  struct Impl;
  explicit StoredSource(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// ---- datasets on the Hugging Face Hub ----

// Returns "hf://datasets/ORG/NAME@COMMIT/path" for "hf://datasets/ORG/NAME[@REVISION][/path]". A branch or tag is
// looked up at each call; a renamed dataset gets its new name. kConfig: the URL does not name a dataset. kStorage: the
// Hub refuses, or is not reachable.
Result<std::string> pin_hub(const std::string& url);

struct HubEntry {
  std::string path;  // relative to the repository
  std::uint64_t bytes = 0;
};
// Returns all files below the folder that a result of pin_hub() names, sorted by path.
Result<std::vector<HubEntry>> list_hub(const std::string& pinned);

// Converts a dataset card's YAML to JSON, with all scalars as strings except booleans and nulls. kData: it is not
// valid.
Result<std::string> card_as_json(std::string_view yaml);

}  // namespace feedline
