// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the stored objects of a source as bytes, for programs that copy or verify a dataset without reading samples.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline {

// One object, open for reads from any thread. Movable, not copyable.
class StoredObject {
 public:
  StoredObject(StoredObject&&) noexcept;
  StoredObject& operator=(StoredObject&&) noexcept;
  ~StoredObject();

  std::uint64_t bytes() const;
  // Changes with the object: modification time and the storage's version, combined in one number.
  std::uint64_t stamp() const;
  // Fills `out` from `offset`; returns the number of bytes read. kStorage: reading failed, or the object has changed.
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) const;
  // kStorage if the object has changed since it was opened.
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
  // Paths or URLs, joined by "::", with braces and wildcards as in open(). Lists folders only for wildcards. kConfig:
  // an unknown scheme, several storage backends, unbalanced braces, or a pattern without matches.
  static Result<StoredSource> open(const std::string& source);
  // The shards, or one folder, in order, with braces and wildcards expanded and without the secrets of URLs.
  const std::vector<std::string>& names() const;
  // Returns names() with each folder that `feedline pack` wrote as tars replaced by the shards found in it. kConfig:
  // packing did not finish. kData: a manifest is damaged. kStorage: a manifest cannot be read.
  Result<StoredSource> shards() const;
  bool is_remote() const;
  Result<bool> is_folder(const std::string& name) const;
  // Opens an object. `name`: one of names(), or an object in one of its folders.
  Result<StoredObject> object(const std::string& name) const;

 private:
  struct Impl;
  explicit StoredSource(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace feedline
