// SPDX-License-Identifier: Apache-2.0
#pragma once

// Copies of whole objects in a folder of this machine, made once for all processes that use the folder, and together
// never larger than a limit.
//
//   keep(object, version)
//     1. NAME.object is there: a shared lock on it, and its checksum, once a process. Nobody removes it meanwhile.
//     2. Else NAME.partial is made and locked. Who finds it locked waits, and begins again.
//     3. Its room is added to the ledger, under its lock, after what has to go is removed; then it is that long.
//     4. The disk gives the room (fallocate), and the caller writes it.
//     5. NAME.entry appears, then NAME.partial becomes NAME.object: under the lock of the ledger, each by a rename.
//     6. The maker's lock becomes a shared one.
//
// Whoever is killed, wherever, leaves a file without a lock, which the next one removes that wants the object, or the
// room. Nothing is flushed to the device: what a power cut spoils, the checksum finds.
//
// What goes first when there is no room: with plans, what they need again last, and nothing that they need as soon as
// what is to come; without one, and of what they never need again, what was not opened for longest.

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

// How many samples are read until a copy is needed next; 0: it is needed now; kNever: not that anybody knows.
// Thread-safe, and never calls the cache.
using NextUse = std::function<std::uint64_t(const Entry& entry)>;
inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// A copy that stays for as long as `file` is open.
struct Kept {
  LockedFile file;
  std::string path;
  Entry entry;
};

// Thread-safe.
class NodeCache {
 public:
  // kConfig: the folder holds something else. A folder that takes no files is used as it is, and noted.
  static Result<std::shared_ptr<NodeCache>> open(const std::string& folder, CacheLimit limit,
                                                 const NodeCalls& calls = node_calls());

  enum class Check : bool { kNo, kOnce };  // the checksum; kNo: the caller does, who reads all of it
  // nullopt: it is not kept.
  std::optional<Kept> find(const std::string& object, const storage::Version& version, Check check);
  // As find(), after one process of all has had `fill` write the object. Errors: those of fill. nullopt: it cannot be
  // kept, and notes() say why.
  class Output;
  using Fill = std::function<Result<void>(Output& output)>;
  enum class Busy : bool { kWait, kLeave };  // what another one is fetching: kLeave: nullopt, and no note
  Result<std::optional<Kept>> keep(const std::string& object, const storage::Version& version, Check check,
                                   const Fill& fill, Busy busy = Busy::kWait);
  // The copy is not what its entry says: it goes, unless others read it.
  void discard(Kept kept);

  // From now on, for as long as somebody has what is given. Of several plans the one counts that needs a copy soonest.
  [[nodiscard]] std::shared_ptr<const NextUse> follow(NextUse plan);
  // Another number after each change by which what found no room may find it: plans that went on, copies let go of.
  std::uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }
  void note_change() { changes_.fetch_add(1, std::memory_order_relaxed); }

  struct Counts {
    std::uint64_t found = 0, made = 0, made_bytes = 0, removed = 0;
  };
  Counts counts() const;
  void note_compared() { ++compared_; }  // a copy that was made has the checksum that somebody vouches for
  std::uint64_t limit() const { return limit_; }
  std::string summary() const;  // for explain(): where, how much, and what went wrong

 private:
  struct Claim {
    LockedFile file;       // not valid: another one was quicker, or is at it
    bool possible = true;  // false: nobody can keep anything here
  };
  NodeCache(std::string folder, std::uint64_t limit, const NodeCalls& calls);
  bool may_keep(const std::string& object, const storage::Version& version);
  Claim claim(const std::string& path, Busy busy);
  Result<std::optional<Kept>> make(Claim claim, const std::string& path, Entry entry, const Fill& fill);
  bool reserve(const storage::FileDescriptor& partial, const Entry& entry);
  using Plans = std::vector<std::shared_ptr<const NextUse>>;
  enum class Room : std::uint8_t { kMade, kAllInUse, kNeededSooner };
  Result<Room> make_room(Ledger& ledger, const Entry& entry);
  Result<void> find_victims(const Plans& plans, std::uint64_t& disk_bytes);  // under mutex_
  static std::uint64_t next_use(const Plans& plans, const Entry& entry);
  Plans plans();
  void release(const std::string& path, std::uint64_t bytes);
  Result<void> publish(const std::string& path, const Entry& entry);
  bool is_sound(const Kept& kept);
  void note(const std::string& line) { notes_.add(line); }

  const std::string folder_;
  const std::uint64_t limit_;
  const NodeCalls& calls_;
  Notes notes_;
  std::atomic<std::uint64_t> found_{0}, made_{0}, made_bytes_{0}, removed_{0}, compared_{0};
  std::mutex mutex_;  // of what stands below
  std::unordered_set<std::uint64_t> checked_;
  std::vector<std::weak_ptr<const NextUse>> plans_;
  std::vector<Copy> victims_;  // the next one to go last; as of the last scan
  std::size_t victims_found_ = 0;
  // What the plans had no room for last: nobody looks again until something has changed.
  struct Refused {
    std::uint64_t changes = 0;
    std::size_t plans = 0;  // that were followed
    std::uint64_t next = 0, bytes = 0;
  };
  std::optional<Refused> refused_;
  std::atomic<std::uint64_t> changes_{1};
};

// Where fill() writes an object, from its beginning to its end.
class NodeCache::Output {
 public:
  // An error: the disk takes no more, or the object would be longer than its version says; fill() passes it on.
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

// The cache that this process has open already with this limit; else opened.
Result<std::shared_ptr<NodeCache>> shared_cache(const std::string& folder, CacheLimit limit);

}  // namespace feedline::cache
