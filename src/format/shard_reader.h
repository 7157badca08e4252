// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shards as files that are open: found, read by many threads, looked at for changes, and let go of where they are many.

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

// Where a shard's plain bytes are: the file itself, or the decompressed copy of a compressed one.
struct ShardFile {
  std::string name;  // as the user gave it
  std::string path;  // what is opened
  std::shared_ptr<const storage::Storage> storage;
  storage::Version version;                                 // of path
  std::shared_ptr<const storage::Reader> reader = nullptr;  // of path, where it was opened to look at it
};

// is_compressed: by its content, so that a plain copy is to be made (plain_copy.h), whose name ends in `extension`.
Result<ShardFile> locate_shard(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                               Result<bool> (*is_compressed)(const storage::Reader& reader), std::string_view extension,
                               cache::Notes* notes);

// The bytes of a shard, once somebody reads them. Thread-safe.
class ShardReader {
 public:
  // is_checked: see is_checked().
  explicit ShardReader(ShardFile file, bool is_checked = true) : file_(std::move(file)), is_checked_(is_checked) {}

  const std::string& name() const { return file_.name; }
  const ShardFile& file() const { return file_; }
  // Its object; no path where that is in another storage than this one, as the plain copy of a compressed shard.
  StoredShard stored_in(const storage::Storage& storage) const {
    return file_.storage.get() == &storage ? StoredShard{file_.path, file_.version} : StoredShard{};
  }
  // Was somebody asked, since its index was made, whether the object is still that one? What is read of it is of its
  // index's version or an error, in any case.
  bool is_checked() const { return is_checked_.load(std::memory_order_relaxed); }
  void note_checked() const { is_checked_.store(true, std::memory_order_relaxed); }
  // A reader that asks where the shard is stored, past any copy of it.
  Result<std::unique_ptr<storage::Reader>> stored_reader() const {
    return file_.storage->open_stored(file_.path, file_.version);
  }
  // The file, opened now unless it is open. kStorage: it is not the one any more that was indexed.
  struct Opened {
    std::shared_ptr<const storage::Reader> reader;
    bool now = false;
  };
  Result<Opened> reader() const;
  // The file, found without a lock, once it was opened and is to stay so until the shard goes; nullptr: not yet, or it
  // gives views, which outlive the shard with the reader.
  const storage::Reader* lasting_reader() const { return lasting_.load(std::memory_order_acquire); }
  void stay_open() const;  // Requires: close() is never called
  // Where the open file has been written to since it was indexed, reader() says so from now on, and lasting_reader() is
  // nullptr.
  void notice_change() const;
  // Lets go of the file; those who hold its reader go on.
  void close() const;

 private:
  const ShardFile file_;
  mutable std::atomic<bool> is_checked_;
  mutable ForkMutex mutex_;
  mutable std::shared_ptr<const storage::Reader>
      reader_;                            // guarded by mutex_; stays though it has changed: some read it
  mutable std::optional<Error> changed_;  // likewise
  mutable std::atomic<const storage::Reader*> lasting_{nullptr};
};

// Keeps the number of open shards of one dataset in bounds: a process may usually open 1,024 files in all, and datasets
// have thousands of shards. Thread-safe.
class OpenShards {
 public:
  static constexpr std::size_t kMost = 256;
  // Before the first reader(): of so many shards. Where all may be open at a time none is closed, and whoever reads one
  // that is open takes no lock.
  void expect(std::size_t shards) { all_stay_ = shards <= kMost; }
  // The shard's file, after closing that of the shard opened longest ago where there are too many. Requires: the
  // shards passed in outlive this and the reader.
  Result<std::shared_ptr<const storage::Reader>> reader(const ShardReader& shard);
  // The same, for what may go on when shards and dataset are gone, as a read does that nobody waits for any more.
  Result<std::shared_ptr<const storage::Reader>> owned_reader(const ShardReader& shard);

 private:
  ForkMutex mutex_;
  std::deque<const ShardReader*> open_;  // in the order of opening; guarded by mutex_
  bool all_stay_ = false;
};

}  // namespace feedline::format
