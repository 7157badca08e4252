// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"
#include "format/index_store.h"
#include "format/tar/field_choice.h"
#include "format/tar/shard_index.h"
#include "storage/storage.h"

namespace feedline::format {

// Where a shard's plain tar bytes are: the file itself, or the decompressed copy of a gzipped one.
struct ShardFile {
  std::string name;  // as the user gave it
  std::string path;  // what is opened
  std::shared_ptr<const storage::Storage> storage;
  storage::Version version;                                 // of path
  std::shared_ptr<const storage::Reader> reader = nullptr;  // of path, where it was opened to look at it
};
Result<ShardFile> locate_shard(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                               cache::Notes* notes = nullptr);

// One tar file of a dataset: its index, and its bytes once somebody reads them. Thread-safe.
class Shard {
 public:
  // Scans that are made at a time: each holds what a storage has worth reading at once, 8 MiB over a network.
  using Scans = std::counting_semaphore<>;
  static constexpr std::ptrdiff_t kMostScans = 16;
  // How all shards of a dataset are opened.
  struct Opening {
    const IndexStore& indexes;
    Scans& scans;
    bool asks = true;  // for the version of each, whatever its storage
  };
  // Takes the kept index, or scans the file and keeps one. Of a storage that holds reads to a version nobody is asked
  // for the shard's where an index is kept and Opening says so: see is_checked(). kData: the first damage.
  static Result<std::unique_ptr<Shard>> open(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                                             const Opening& opening);

  const ShardIndex& index() const { return index_; }
  const std::string& name() const { return file_.name; }
  // Its object; no path where that is in another storage than this one, as the plain copy of a gzipped shard.
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
  // It is another one by now: the next who opens it makes an index anew.
  void forget_index(const IndexStore& indexes) const { indexes.forget(*file_.storage, file_.path); }
  void choose_fields(const std::vector<FieldChoice>& fields) { finder_.emplace(index_, fields); }
  // Requires: choose_fields() came before.
  const FieldFinder& finder() const { return *finder_; }
  // The file, opened now unless it is open. kStorage: it is not the one any more that was indexed.
  struct Opened {
    std::shared_ptr<const storage::Reader> reader;
    bool now = false;
  };
  Result<Opened> reader() const;
  // The file, found without a lock, once it was opened and is to stay so until the shard goes; nullptr: not yet.
  const storage::Reader* lasting_reader() const { return lasting_.load(std::memory_order_acquire); }
  void stay_open() const;  // Requires: close() is never called
  // Where the open file has been written to since it was indexed, reader() says so from now on, and lasting_reader() is
  // nullptr.
  void notice_change() const;
  // Lets go of the file; those who hold its reader go on.
  void close() const;

 private:
  Shard(ShardFile file, ShardIndex index, bool is_checked);

  const ShardFile file_;
  const ShardIndex index_;
  std::optional<FieldFinder> finder_;
  mutable std::atomic<bool> is_checked_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const storage::Reader>
      reader_;                            // guarded by mutex_; stays though it has changed: some read it
  mutable std::optional<Error> changed_;  // likewise
  mutable std::atomic<const storage::Reader*> lasting_{nullptr};
};

// Keeps the number of open shards of one dataset in bounds: a process may usually open 1,024 files in all, and datasets
//  have thousands of shards. Thread-safe.
class OpenShards {
 public:
  static constexpr std::size_t kMost = 256;
  // Before the first reader(): of so many shards. Where all may be open at a time none is closed, and whoever reads one
  // that is open takes no lock.
  void expect(std::size_t shards) { all_stay_ = shards <= kMost; }
  // The shard's file, after closing that of the shard opened longest ago where there are too many. Requires: the
  // shards passed in outlive this and the reader.
  Result<std::shared_ptr<const storage::Reader>> reader(const Shard& shard);

 private:
  std::mutex mutex_;
  std::deque<const Shard*> open_;  // in the order of opening; guarded by mutex_
  bool all_stay_ = false;
};

}  // namespace feedline::format
