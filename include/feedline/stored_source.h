// SPDX-License-Identifier: Apache-2.0
#pragma once

// The stored objects that a source is made of, as bytes: for programs that copy or prove a dataset and read no sample.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline {

// One object, open for reads from any thread. Moves; does not copy.
class StoredObject {
 public:
  StoredObject(StoredObject&&) noexcept;
  StoredObject& operator=(StoredObject&&) noexcept;
  ~StoredObject();

  std::uint64_t bytes() const;
  // Changes with the object: time of change and what the storage calls its version, as one number.
  std::uint64_t stamp() const;
  // Fills `out` from `offset`; gives how many bytes there were. kStorage: it cannot be read, or has changed.
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) const;
  // kStorage where the object is not the one any more that was opened.
  Result<void> check_unchanged() const;

 private:
  friend class StoredSource;
  struct Impl;
  explicit StoredObject(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Thread-safe. Copies share.
class StoredSource {
 public:
  // Paths or URLs, joined by "::", with braces and wildcards as in open(). Lists folders only for wildcards. kConfig:
  // no such scheme, several storages, braces that do not match, or a pattern that nothing matches.
  static Result<StoredSource> open(const std::string& source);
  // Shards, or one folder, in order, with braces and wildcards expanded. Without the secrets of URLs.
  const std::vector<std::string>& names() const;
  // The same with the shards in the place of folders that `feedline pack` wrote as tars, which it looks for. kConfig:
  // packing did not finish. kData: a manifest is damaged. kStorage: one cannot be read.
  Result<StoredSource> shards() const;
  bool is_remote() const;
  Result<bool> is_folder(const std::string& name) const;
  // `name`: one of names(), or an object in a folder of them.
  Result<StoredObject> object(const std::string& name) const;

 private:
  struct Impl;
  explicit StoredSource(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace feedline
