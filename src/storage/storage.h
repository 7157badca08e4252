// SPDX-License-Identifier: Apache-2.0
#pragma once

// A place that objects live in, by name. Local files, HTTP, S3 and wrappers (cache, faults) have the same
// interface. Which storage reads what a user wrote: registry.h.

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

// How a user wants a network to be used; nothing of it is done where it is not asked for.
struct Reading {
  bool compares_sums = false;  // whole objects with the checksums of their server
  bool hedges = false;         // a second request for one that is slow to be answered
};

// Second requests, made for some that were late.
struct SecondRequests {
  std::uint64_t made = 0, won = 0;
  std::uint64_t dropped_bytes = 0;  // that came of answers which were not taken, until those were ended
};

struct Entry {
  std::string name;  // last component only
  bool is_directory = false;
};

// An object below a folder, as a listing has it.
struct StoredBelow {
  std::string path;  // relative to the folder
  std::uint64_t bytes = 0;
  std::uint64_t tag = 0;  // as that of ObjectStat; 0: not known
};
// What lies below a folder, in any order.
struct Tree {
  std::vector<StoredBelow> objects;
  std::vector<std::string> folders;  // relative, without a slash at the end: those that were not looked into
  std::vector<std::string> marks;    // the same, of folders that something stands for by itself, as for an empty one
};
enum class Depth : std::uint8_t {
  kFolder,  // the folder alone, where that is less to ask for
  kAll,
};

// Thread-safe.
class Storage {
 public:
  virtual ~Storage() = default;
  virtual Result<std::unique_ptr<Reader>> open(const std::string& path, Access access) const = 0;
  // open() of this version and no other: see check_version(). Where reads are held to a version this may ask nobody,
  // and they are what fails.
  virtual Result<std::unique_ptr<Reader>> open_version(const std::string& path, Access access,
                                                       const Version& version) const;
  // open_version() past any copy on this machine: what is read comes from where the object is stored.
  virtual Result<std::unique_ptr<Reader>> open_stored(const std::string& path, const Version& version) const {
    return open_version(path, Access::kRead, version);
  }
  // Does each read say which version it is of, and is it compared with the one that was opened? Then an index may be
  // used before anybody has asked whether it is still of its object: nothing else can be read by it.
  virtual bool holds_versions() const { return false; }
  // What is known of the object without asking: kStorage where it is not this version.
  virtual Result<void> check_known(const std::string& /*path*/, const Version& /*version*/) const { return {}; }
  // A whole small object in one go: open, read to its end, close. The span points into `buffer`. kData where it has
  // more than `most` bytes, whatever it says of its size: `buffer` never gets larger than that by more than one.
  virtual Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                                      std::uint64_t most) const = 0;
  // read_all() of this version and no other: see check_version().
  virtual Result<std::span<const std::byte>> read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                          std::uint64_t most, const Version& version) const;
  virtual Result<std::vector<Entry>> list(const std::string& directory) const = 0;  // sorted by name, links followed
  // At least `most` of its entries, or all of them; the first ones found if finding all takes longer.
  virtual Result<std::vector<Entry>> list_some(const std::string& directory, std::size_t /*most*/) const {
    return list(directory);
  }
  // Are folders nothing but slashes in names? They have no times, then, that tell whether something has changed.
  virtual bool has_flat_names() const { return false; }
  // Of a storage with flat names: what lies below a folder, many at once. Nothing at all is no error.
  virtual Result<Tree> list_below(const std::string& directory, Depth depth) const;
  // Sets `name` to what the object is called that a listing of the folder has at this path.
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
  // The same for every way to write the name of an object, another one for every other object, and known of what is
  // not there too: what a cache calls it.
  virtual std::string identity(const std::string& path) const { return path; }
  // Where the object is a file of this machine: the path by which it can be mapped, and files kept beside it.
  virtual std::optional<std::string> local_path(const std::string& /*path*/) const { return std::nullopt; }
  // What is known of this version's bytes besides themselves, to compare what was read with: nullopt, nothing, or it
  // was not asked for.
  virtual Result<std::optional<ObjectSum>> known_sum(const std::string& /*path*/, const Version& /*version*/) const {
    return std::nullopt;
  }
  virtual std::string_view who_knows_sums() const { return "the server"; }  // for errors
  // The same storage read in another way; nullptr: it has one way.
  virtual std::shared_ptr<const Storage> reading(const Reading& /*how*/) const { return nullptr; }
  // What a user has to know of it, whatever was read, for explain(); empty: nothing.
  virtual std::string note() const { return {}; }
  // The same of how it has read.
  virtual std::string summary() const { return {}; }
  // Of Reading::hedges; nullopt: there are none.
  virtual std::optional<SecondRequests> second_requests() const { return std::nullopt; }
  // Is every read a request over a network?
  virtual bool is_remote() const { return false; }
  // Are reads that lie near each other one request, where they are handed over together? Then whoever reads ahead does
  // not hand over one by one.
  virtual bool joins_reads() const { return false; }
  // For many reads at once, better than by a thread for each; nullptr: it has nothing of the kind.
  virtual std::unique_ptr<Transport> own_transport() const { return nullptr; }
};

std::shared_ptr<const Storage> local_storage();

}  // namespace feedline::storage
