// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small entries, identified by numbers, that persist between runs and are shared by processes. A mapped file contains
// all entries that were written; the process's new entries are in memory. Lost entries cost only the time to create
// them again, so no failure is an error: a file that is damaged, missing or in another version counts as empty, and on
// a full disk, new entries stay in memory up to a limit.
//
// The file is never changed in place. A process that writes its entries takes the lock, reads the newest file, and
// replaces that file with a file with the old and the new entries, so processes that write at the same time lose no
// entries.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fork_mutex.h"
#include "cache/frame.h"
#include "cache/output_file.h"
#include "feedline/error.h"

namespace feedline::cache {

// A mapped file of entries. Immutable and thread-safe.
//
//      0  8      magic
//      8  8      format version
//     16  8      count
//     24  8      bytes of all entries
//     32  8      XXH3-64 of keys and ends
//     40  8      XXH3-64 of the numbers above
//     48  8 x n  keys, ascending
//         8 x n  ends of the entries, from the first entry's first byte
//         ...    entries, which have their own checksums
class EntryFile {
 public:
  // Why the file has no entries.
  enum class Lack : std::uint8_t { kNone, kMissing, kForeign, kDamaged };
  // Maps a file. Never fails: an unusable file counts as empty.
  static std::shared_ptr<const EntryFile> open(const std::string& path, FrameKind kind);
  // Like open(), for a file's bytes, which must stay valid.
  static std::shared_ptr<const EntryFile> of_bytes(std::span<const std::byte> file, FrameKind kind);

  std::optional<std::span<const std::byte>> find(std::uint64_t key) const;
  std::size_t size() const { return keys_.size(); }
  std::uint64_t key(std::size_t i) const { return keys_[i]; }
  // Requires: i < size(). Returns an empty span if the file is too short.
  std::span<const std::byte> entry(std::size_t i) const;
  std::uint64_t bytes() const { return entries_.size(); }
  Lack lack() const { return lack_; }
  bool is_current() const;  // the path still names this file

 private:
  void take(std::span<const std::byte> file, FrameKind kind);
  bool parse(std::span<const std::byte> file, FrameKind kind);

  std::string path_;
  std::shared_ptr<const void> pin_;
  std::uint64_t object_ = 0;  // identifies the mapped file
  Lack lack_ = Lack::kMissing;
  std::span<const std::uint64_t> keys_, ends_;
  std::span<const std::byte> entries_;
};

struct EntryLimits {
  std::uint64_t least_written = 64 << 10;   // bytes of new entries for which a first file is worth writing
  std::uint64_t most_pending = 16 << 20;    // bytes of new entries in memory; more are written at once
  std::uint64_t most_written = 8ULL << 30;  // of the file
};

// Thread-safe; a forked child continues with its parent's entries.
class EntryStore {
 public:
  // paths: possible paths of the file. The first path that exists is read, and the first writable path is written.
  EntryStore(FrameKind kind, std::vector<std::string> paths, EntryLimits limits = {},
             const SystemWrites& writes = system_writes());
  // Writes the remaining entries.
  ~EntryStore();
  EntryStore(const EntryStore&) = delete;
  EntryStore& operator=(const EntryStore&) = delete;

  // Copies an entry. Returns false, with `entry` empty, if there is no entry for `key`.
  bool find(std::uint64_t key, std::vector<std::byte>& entry) const;
  // Adds or replaces an entry; drops it if the limits are reached.
  void save(std::uint64_t key, std::span<const std::byte> entry);
  // Writes new entries and reads the entries of other processes. always: write even if the new entries are too few to
  // be worth a file. kStorage: the new entries could not be written, and stay in memory.
  Result<void> write(bool always = false);

  struct Counts {
    std::uint64_t entries = 0;  // in the file, and new ones that are not
    std::uint64_t bytes = 0;
    std::uint64_t dropped = 0;  // entries over the limits
    bool is_damaged = false;    // a file was damaged, and is ignored
    bool is_foreign = false;    // a file was of another version, and is ignored
    std::string path = {};      // of the file; empty if there is none
    std::string failure = {};   // why entries could not be written
  };
  Counts counts() const;

 private:
  using Entries = std::unordered_map<std::uint64_t, std::vector<std::byte>>;

  bool write_is_due(bool always) const;
  void read_file();
  Result<void> write_to(const std::string& path, const Entries& added);

  const FrameKind kind_;
  const std::vector<std::string> paths_;
  const EntryLimits limits_;
  const SystemWrites& writes_;

  ForkMutex writing_;  // held by the thread that writes, before mutex_
  mutable ForkMutex mutex_;
  std::shared_ptr<const EntryFile> file_;
  std::string path_;                              // of file_
  Entries pending_;                               // new, not in any file
  std::shared_ptr<const Entries> being_written_;  // null, or new ones in the write that is in flight
  std::uint64_t pending_bytes_ = 0;
  Counts counts_;
};

}  // namespace feedline::cache
