// SPDX-License-Identifier: Apache-2.0
#pragma once

// Locates and opens shard files, which many threads can read. Checks the files for changes, and closes some if too many
// are open.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/fork_mutex.h"
#include "feedline/error.h"
#include "format/format.h"
#include "storage/storage.h"

namespace feedline::format {

// The location of a shard's uncompressed data: the file itself, or the decompressed copy of a compressed file.
struct ShardFile {
  std::string name;  // as given by the user
  std::string path;  // the file to open
  std::shared_ptr<const storage::Storage> storage;
  storage::Version version;                                 // of path
  std::shared_ptr<const storage::Reader> reader = nullptr;  // of path, if already opened for inspection
};

// Locates a shard. If `is_compressed` returns true for the shard, creates a decompressed copy (plain_copy.h) whose name
// ends in `extension`.
Result<ShardFile> locate_shard(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                               Result<bool> (*is_compressed)(const storage::Reader& reader), std::string_view extension,
                               cache::Notes* notes);

// Opens a shard on first use. Thread-safe.
class ShardReader {
 public:
  // is_checked: see is_checked().
  explicit ShardReader(ShardFile file, bool is_checked = true) : file_(std::move(file)), is_checked_(is_checked) {}

  const std::string& name() const { return file_.name; }
  const ShardFile& file() const { return file_; }
  // Returns the stored object. An object that is not in `storage`, such as the decompressed copy of a compressed shard,
  // has no path.
  StoredShard stored_in(const storage::Storage& storage) const {
    return file_.storage.get() == &storage ? StoredShard{file_.path, file_.version} : StoredShard{};
  }
  // Returns whether the object has been checked for changes since its index was built. Reads from unchecked objects
  // also return only bytes of the indexed version, or an error.
  bool is_checked() const { return is_checked_.load(std::memory_order_relaxed); }
  void note_checked() const { is_checked_.store(true, std::memory_order_relaxed); }
  // Returns a reader of the original object that bypasses any cached copy.
  Result<std::unique_ptr<storage::Reader>> stored_reader() const {
    return file_.storage->open_stored(file_.path, file_.version);
  }
  // An open file, and whether this call has opened it. reader() fails with kStorage if the file has changed since it
  // was indexed.
  struct Opened {
    std::shared_ptr<const storage::Reader> reader;
    bool now = false;
  };
  Result<Opened> reader() const;
  // Returns the file without locking, if it is open and will not be closed before the shard. Otherwise returns nullptr.
  // Also returns nullptr if the reader returns views, since views and their reader may outlive the shard.
  const storage::Reader* lasting_reader() const { return lasting_.load(std::memory_order_acquire); }
  void stay_open() const;  // Requires: close() is never called
  // Checks whether the open file has been modified since it was indexed. If the file has been modified, reader() fails
  // from now on, and lasting_reader() returns nullptr.
  void notice_change() const;
  // Releases the file. Previously returned readers stay valid.
  void close() const;

 private:
  const ShardFile file_;
  mutable std::atomic<bool> is_checked_;
  mutable ForkMutex mutex_;
  mutable std::shared_ptr<const storage::Reader>
      reader_;                            // guarded by mutex_; retained after a change for threads that still read it
  mutable std::optional<Error> changed_;  // guarded by mutex_
  mutable std::atomic<const storage::Reader*> lasting_{nullptr};
};

// Limits the number of open shards of a dataset, because a process may usually open 1,024 files, and a dataset may have
// thousands of shards. Thread-safe.
class OpenShards {
 public:
  static constexpr std::size_t kMost = 256;
  // Sets the number of shards. Must be called before reader(). If all shards may be open at the same time, none is
  // closed, and reading an open shard does not take a lock.
  void expect(std::size_t shards) { all_stay_ = shards <= kMost; }
  // Returns the shard's file. If too many shards are open, first closes the one that was opened first. Requires: the
  // shards outlive this object and the reader.
  Result<std::shared_ptr<const storage::Reader>> reader(const ShardReader& shard);
  // Like reader(), for reads that may outlive the shards and the dataset, such as abandoned reads.
  Result<std::shared_ptr<const storage::Reader>> owned_reader(const ShardReader& shard);

 private:
  ForkMutex mutex_;
  std::deque<const ShardReader*> open_;  // in the order of opening; guarded by mutex_
  bool all_stay_ = false;
};

}  // namespace feedline::format
