// SPDX-License-Identifier: Apache-2.0
#pragma once

// A container of named objects. Local files, HTTP, S3 and wrappers (cache, faults) implement this interface. registry.h
// selects the storage for a user's path or URL.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "memory/record.h"
#include "storage/object_sum.h"
#include "storage/reader.h"
#include "storage/transport.h"

namespace feedline::storage {

enum class Access {
  kRead,  // many small objects, each read once: pread
  kMap,   // few large objects, read in pieces: mmap
};

// The user's options for network reads; all are off by default.
struct Reading {
  bool compares_sums = false;  // verify whole objects with their server's checksums
  bool hedges = false;         // send a second request if the first is slow to be answered
};

// Statistics of hedged requests.
struct SecondRequests {
  std::uint64_t made = 0, won = 0;
  std::uint64_t dropped_bytes = 0;  // bytes of discarded responses received before cancellation
};

struct Entry {
  std::string name;  // last component only
  bool is_directory = false;
};

// An object below a folder, as in the folder's listing.
struct StoredBelow {
  std::string path;  // relative to the folder
  std::uint64_t bytes = 0;
  std::uint64_t tag = 0;  // as in ObjectStat; 0 if unknown
};
// A folder's contents, in any order.
struct Tree {
  std::vector<StoredBelow> objects;
  std::vector<std::string> folders;  // relative, without a trailing slash: folders that were not listed
  std::vector<std::string> marks;    // the same for folders with an explicit entry, such as empty ones
};
enum class Depth : std::uint8_t {
  kFolder,  // only this folder, if that is a cheaper request
  kAll,
};

// Thread-safe.
class Storage {
 public:
  virtual ~Storage() = default;
  virtual Result<std::unique_ptr<Reader>> open(const std::string& path, Access access) const = 0;
  // Opens only this version (see check_version()). If reads are pinned to a version, this function may omit the
  // request; reads then fail if the version differs.
  virtual Result<std::unique_ptr<Reader>> open_version(const std::string& path, Access access,
                                                       const Version& version) const;
  // Like open_version(), but bypasses local copies and reads from the original storage.
  virtual Result<std::unique_ptr<Reader>> open_stored(const std::string& path, const Version& version) const {
    return open_version(path, Access::kRead, version);
  }
  // Returns whether each read reports its version and is compared with the opened one. If so, an index may be used
  // before it is known to match its object, because no other version can be read.
  virtual bool holds_versions() const { return false; }
  // Checks the version without sending a request. kStorage: the object is known to have another version.
  virtual Result<void> check_known(const std::string& /*path*/, const Version& /*version*/) const { return {}; }
  // Opens a small object, reads it completely, and closes it. The span points into `buffer`. kData: the object has more
  // than `most` bytes, whatever size is reported; `buffer` grows to at most one byte more.
  virtual Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                                      std::uint64_t most) const = 0;
  // Like read_all(), for exactly this version (see check_version()).
  virtual Result<std::span<const std::byte>> read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                          std::uint64_t most, const Version& version) const;
  virtual Result<std::vector<Entry>> list(const std::string& directory) const = 0;  // sorted by name, links followed
  // Lists all entries or, if that would take longer, at least the first `most` entries that are found.
  virtual Result<std::vector<Entry>> list_some(const std::string& directory, std::size_t /*most*/) const {
    return list(directory);
  }
  // Returns whether folders are only slashes in names and therefore have no modification times.
  virtual bool has_flat_names() const { return false; }
  // For a backend with flat names: lists the contents below a folder, with many entries per request. A folder without
  // contents is not an error.
  virtual Result<Tree> list_below(const std::string& directory, Depth depth) const;
  // Sets `name` to the object's name for a path in the listing of the folder.
  virtual void name_below(const std::string& directory, std::string_view path, std::string& name) const {
    name.assign(directory).append("/").append(path);
  }
  std::string below(const std::string& directory, std::string_view path) const {
    std::string name;
    name_below(directory, path, name);
    return name;
  }
  virtual Result<ObjectStat> stat(const std::string& path) const = 0;
  virtual Result<bool> is_directory(const std::string& path) const = 0;
  // Returns a unique name of the object, which is the same for every spelling and also exists for missing objects.
  // Caches use this name as their key.
  virtual std::string identity(const std::string& path) const { return path; }
  // For a local file: returns its path, to map the file or to find files that are stored next to it.
  virtual std::optional<std::string> local_path(const std::string& /*path*/) const { return std::nullopt; }
  // Returns the expected checksum of this version, to verify reads; nullopt if it is unknown or not enabled.
  virtual Result<std::optional<ObjectSum>> known_sum(const std::string& /*path*/, const Version& /*version*/) const {
    return std::nullopt;
  }
  virtual std::string_view who_knows_sums() const { return "the server"; }  // for errors
  // Returns the same storage with other read options; nullptr if it has no options.
  virtual std::shared_ptr<const Storage> reading(const Reading& /*how*/) const { return nullptr; }
  // Returns notes for the user in explain() that do not depend on reads; empty if there are none.
  virtual std::string note() const { return {}; }
  // Returns notes about the reads so far.
  virtual std::string summary() const { return {}; }
  // Returns statistics of Reading::hedges; nullopt if hedging is not enabled.
  virtual std::optional<SecondRequests> second_requests() const { return std::nullopt; }
  // Returns whether every read is a network request.
  virtual bool is_remote() const { return false; }
  // Returns whether adjacent reads that are started together become one request. If so, prefetching should start such
  // reads together.
  virtual bool joins_reads() const { return false; }
  // Returns a transport for many concurrent reads that is better than a thread per read; nullptr if there is none.
  virtual std::unique_ptr<Transport> own_transport() const { return nullptr; }
};

std::shared_ptr<const Storage> local_storage();

}  // namespace feedline::storage
