// SPDX-License-Identifier: Apache-2.0
#pragma once

// Open shard files: locates them, lets many threads read them, checks them for changes, and closes some if there are
// too many.

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

// The location of a shard's plain bytes: the file itself, or the decompressed copy of a compressed file.
struct ShardFile {
  std::string name;  // as given by the user
  std::string path;  // the file to open
  std::shared_ptr<const storage::Storage> storage;
  storage::Version version;                                 // of path
  std::shared_ptr<const storage::Reader> reader = nullptr;  // of path, if already opened for inspection
};

// is_compressed: checks the content; a compressed shard gets a plain copy (plain_copy.h), whose name ends in
// `extension`.
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
  // The object in `storage`; without a path if it is in another storage, such as the plain copy of a compressed shard.
  StoredShard stored_in(const storage::Storage& storage) const {
    return file_.storage.get() == &storage ? StoredShard{file_.path, file_.version} : StoredShard{};
  }
  // True if the object has been checked for changes since its index was made. In any case, reads return bytes of the
  // index's version or an error.
  bool is_checked() const { return is_checked_.load(std::memory_order_relaxed); }
  void note_checked() const { is_checked_.store(true, std::memory_order_relaxed); }
  // A reader of the original storage that bypasses any cached copy.
  Result<std::unique_ptr<storage::Reader>> stored_reader() const {
    return file_.storage->open_stored(file_.path, file_.version);
  }
  // The file, which is opened now if necessary. kStorage: it has changed since it was indexed.
  struct Opened {
    std::shared_ptr<const storage::Reader> reader;
    bool now = false;
  };
  Result<Opened> reader() const;
  // The file, without locking, once it is open and stays open for the shard's lifetime; nullptr before that, or if the
  // reader returns views, which outlive the shard together with the reader.
  const storage::Reader* lasting_reader() const { return lasting_.load(std::memory_order_acquire); }
  void stay_open() const;  // Requires: close() is never called
  // Checks whether the open file has been modified since it was indexed. If so, reader() returns the error from now on,
  // and lasting_reader() returns nullptr.
  void notice_change() const;
  // Releases the file; readers already returned stay valid.
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

// Limits the number of open shards of a dataset: a process may usually open 1,024 files in all, and datasets have
// thousands of shards. Thread-safe.
class OpenShards {
 public:
  static constexpr std::size_t kMost = 256;
  // Announces the number of shards, before the first reader(). If all of them may be open at once, none is closed, and
  // reading an open shard takes no lock.
  void expect(std::size_t shards) { all_stay_ = shards <= kMost; }
  // Returns the shard's file. If too many are open, first closes the one opened longest ago. Requires: the shards
  // passed in outlive this and the reader.
  Result<std::shared_ptr<const storage::Reader>> reader(const ShardReader& shard);
  // Like reader(), for reads that may outlive the shards and the dataset, such as abandoned ones.
  Result<std::shared_ptr<const storage::Reader>> owned_reader(const ShardReader& shard);

 private:
  ForkMutex mutex_;
  std::deque<const ShardReader*> open_;  // in the order of opening; guarded by mutex_
  bool all_stay_ = false;
};

}  // namespace feedline::format
