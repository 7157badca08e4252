// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stores copies of whole objects in a folder on this machine. Each copy is made once for all processes that use the
// folder, and the total size is limited.
//
//   keep(object, version)
//     1. If NAME.object exists, a process takes a shared lock on it, which prevents removal, and verifies it once.
//     2. Otherwise, the process creates and locks NAME.partial. If another process has locked the file already, it
//        waits and starts over.
//     3. Under the ledger's lock, the process evicts copies, adds the size to the ledger, and extends the file to that
//        size.
//     4. The process reserves the disk space (fallocate), and the caller writes the object.
//     5. Under the ledger's lock, the process creates NAME.entry, and then renames NAME.partial to NAME.object.
//     6. The process downgrades its lock to a shared one.
//
// A process that is killed at any point leaves an unlocked file, which the next process that needs the object or the
// space removes. Nothing is flushed to the device: checksums detect damage from a power failure.
//
// Eviction order: with plans, copies that are needed last are evicted first, but never copies that are needed as soon
// as the new one. Without a plan, and among copies that no plan needs, the least recently opened are evicted first.

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "cache/checksum.h"
#include "cache/file_lock.h"
#include "cache/node/copies.h"
#include "cache/node/entry.h"
#include "cache/node/ledger.h"
#include "cache/notes.h"
#include "feedline/error.h"
#include "feedline/node_cache.h"

namespace feedline::cache {

// Returns the number of samples that will be read before a copy is needed next: 0 if it is needed now, kNever if no
// plan needs it. The function must be thread-safe, and must not call the cache.
using NextUse = std::function<std::uint64_t(const Entry& entry)>;
inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// A copy that cannot be evicted while `file` is open.
struct HeldCopy {
  LockedFile file;
  std::string path;
  Entry entry;
};

// Thread-safe.
class NodeCache {
 public:
  // kConfig: the folder contains other files. If the folder is not writable, it is used read-only, and a note is added.
  static Result<std::shared_ptr<NodeCache>> open(const std::string& folder, CacheLimit limit,
                                                 const NodeCalls& calls = node_calls());

  enum class Check : bool { kNo, kOnce };  // whether to verify the checksum; kNo: the caller reads everything and does
  // nullopt: not cached.
  std::optional<HeldCopy> find(const std::string& object, const storage::Version& version, Check check);
  // Like find(), but if there is no copy, one process calls `fill` to write the object. Errors: those from `fill`.
  // Returns nullopt if the object cannot be cached; notes() contains the reason.
  class Output;
  using Fill = std::function<Result<void>(Output& output)>;
  enum class Busy : bool {
    kWait,
    kLeave
  };  // if another process is fetching it: kLeave: returns nullopt without a
      // note
  Result<std::optional<HeldCopy>> keep(const std::string& object, const storage::Version& version, Check check,
                                       const Fill& fill, Busy busy = Busy::kWait);
  // Call this function if the copy does not match its entry: the copy is removed unless other processes are reading it.
  void discard(HeldCopy held);

  // Registers a plan for the lifetime of the result. If there are several plans, the earliest use of a copy counts.
  [[nodiscard]] std::shared_ptr<const NextUse> follow(NextUse plan);
  // Changes whenever room may have become available, that is, when plans advance or copies are released.
  std::uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }
  void note_change() { changes_.fetch_add(1, std::memory_order_relaxed); }

  struct Counts {
    std::uint64_t found = 0, made = 0, made_bytes = 0, removed = 0;
  };
  Counts counts() const;
  void note_compared() { ++compared_; }  // a new copy matched the checksum from its server or manifest
  std::uint64_t limit() const { return limit_; }
  std::string summary() const;  // for explain(): the location, the size, and any problems

 private:
  struct Claim {
    LockedFile file;       // not valid if another process has fetched it or is fetching it
    bool possible = true;  // false: no process can write here
  };
  NodeCache(std::string folder, std::uint64_t limit, const NodeCalls& calls);
  bool may_keep(const std::string& object, const storage::Version& version);
  Claim claim(const std::string& path, Busy busy);
  Result<std::optional<HeldCopy>> make(Claim claim, const std::string& path, Entry entry, const Fill& fill);
  bool reserve(const storage::FileDescriptor& partial, const Entry& entry);
  using Plans = std::vector<std::shared_ptr<const NextUse>>;
  enum class Room : std::uint8_t { kMade, kAllInUse, kNeededSooner };
  Result<Room> make_room(Ledger& ledger, const Entry& entry);
  Result<void> find_victims(const Plans& plans, std::uint64_t& disk_bytes);  // guarded by mutex_
  static std::uint64_t next_use(const Plans& plans, const Entry& entry);
  Plans plans();
  void release(const std::string& path, std::uint64_t bytes);
  Result<void> publish(const std::string& path, const Entry& entry);
  bool is_sound(const HeldCopy& held);
  void note(const std::string& line) { notes_.add(line); }

  const std::string folder_;
  const std::uint64_t limit_;
  const NodeCalls& calls_;
  Notes notes_;
  std::atomic<std::uint64_t> found_{0}, made_{0}, made_bytes_{0}, removed_{0}, compared_{0};
  std::mutex mutex_;  // guards the members below
  std::unordered_set<std::uint64_t> checked_;
  std::vector<std::weak_ptr<const NextUse>> plans_;
  std::vector<Copy> victims_;  // next eviction candidate last; as of the last scan
  std::size_t victims_found_ = 0;
  // The last request for which there was no room. A request that needs as much room, no sooner, is refused without a
  // search until changes() or the plans change.
  struct Refused {
    std::uint64_t changes = 0;
    std::size_t plans = 0;  // that were followed
    std::uint64_t next = 0, bytes = 0;
  };
  std::optional<Refused> refused_;
  std::atomic<std::uint64_t> changes_{1};
};

// The output to which fill() writes an object sequentially.
class NodeCache::Output {
 public:
  // Returns an error if the disk is full or the object has more bytes than its version specifies; fill() must return
  // that error.
  Result<void> append(std::span<const std::byte> bytes);

 private:
  friend class NodeCache;
  Output(const storage::FileDescriptor& fd, std::uint64_t bytes, const NodeCalls& calls)
      : fd_(fd), left_(bytes), calls_(calls) {}
  const storage::FileDescriptor& fd_;
  std::uint64_t left_;
  const NodeCalls& calls_;
  Xxh3 sum_;
  std::optional<Error> failed_;  // of the disk
};

// Returns the cache that this process already has open with this limit, or opens one.
Result<std::shared_ptr<NodeCache>> shared_cache(const std::string& folder, CacheLimit limit);

}  // namespace feedline::cache
