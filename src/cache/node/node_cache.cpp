// SPDX-License-Identifier: Apache-2.0
#include "cache/node/node_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "cache/file_lock.h"
#include "cache/own_files.h"
#include "cache/places.h"
#include "storage/local_file.h"
#include "storage/local_storage.h"

namespace feedline::cache {
namespace {

using storage::FileDescriptor;

constexpr mode_t kMode = 0666;  // minus the umask
// A copy's last-use time is updated at most this often: one write for many opens of small objects.
constexpr std::int64_t kTouchNs = 1'000'000'000;
// Listing eviction candidates examines every copy, so a list is used until this fraction of its candidates has been
// evicted.
constexpr std::size_t kPartOfVictims = 16;

std::int64_t now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::string amount(std::uint64_t bytes) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  return bytes < kMiB ? std::to_string(bytes) + " bytes" : std::to_string(bytes / kMiB) + " MiB";
}

std::string object_file(const std::string& path) { return path + std::string(kObject); }
std::string entry_file(const std::string& path) { return path + std::string(kEntry); }
std::string partial_file(const std::string& path) { return path + std::string(kPartial); }

// A fraction is applied to the disk's free space plus the cache's size, so the limit does not change as the cache
// fills.
Result<std::uint64_t> bytes_of(const CacheLimit& limit, const std::string& folder, std::uint64_t held) {
  if (limit.bytes > 0) return limit.bytes;
  struct ::statvfs disk;
  if (::statvfs(folder.c_str(), &disk) != 0) return storage::file_error("cannot look up", folder, errno);
  const auto free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  return static_cast<std::uint64_t>((free + static_cast<double>(held)) * limit.share);
}

// A rebuilt copy is a different one, even if the file system reuses its inode number.
std::uint64_t number_of(const HeldCopy& cached) {
  return base::mix64(xxh3(std::as_bytes(std::span(cached.path))) + static_cast<std::uint64_t>(cached.entry.made_ns));
}

// A copy may have been used since the list of eviction candidates was built.
bool is_unused_since(const Copy& copy) {
  const auto stat = storage::local_storage()->stat(object_file(copy.path));
  return stat && stat->mtime_ns == copy.used_ns;
}

void touch(const FileDescriptor& fd) {
  struct ::stat status;
  if (::fstat(fd.get(), &status) != 0 || now_ns() - storage::to_object_stat(status).mtime_ns < kTouchNs) return;
  const std::array<::timespec, 2> times{::timespec{0, UTIME_OMIT}, ::timespec{0, UTIME_NOW}};
  static_cast<void>(::futimens(fd.get(), times.data()));  // may fail for another user's file
}

}  // namespace

Result<std::shared_ptr<NodeCache>> NodeCache::open(const std::string& folder, CacheLimit limit,
                                                   const NodeCalls& calls) {
  FEEDLINE_CHECK_OK(check_cache_folder(folder, FolderAccess::kMake, calls));
  std::uint64_t held = 0;
  std::string refused;
  if (auto ledger = Ledger::lock(folder, calls)) {
    if (const auto known = ledger->disk_bytes()) {
      held = *known;
    } else {
      FEEDLINE_TRY(const Copies copies, scan(folder, Leftovers::kRemove, calls));
      held = copies.disk_bytes;
      if (auto written = ledger->write(held); !written) refused = written.error().message();
    }
  } else {
    refused = ledger.error().message();
  }
  FEEDLINE_TRY(const std::uint64_t bytes, bytes_of(limit, folder, held));
  std::shared_ptr<NodeCache> cache(new NodeCache(folder, bytes, calls));
  if (!refused.empty()) cache->note("nothing can be added to the cache; existing copies are used: " + refused);
  return cache;
}

NodeCache::NodeCache(std::string folder, std::uint64_t limit, const NodeCalls& calls)
    : folder_(std::move(folder)), limit_(limit), calls_(calls) {}

std::optional<HeldCopy> NodeCache::find(const std::string& object, const storage::Version& version, Check check) {
  HeldCopy cached;
  cached.path = copy_path(folder_, entry_name(object, version));
  cached.file = lock_named(object_file(cached.path), LOCK_SH);
  if (!cached.file.valid()) return {};
  auto entry = entry_of(cached.path);
  struct ::stat status;
  const bool fits = entry && ::fstat(cached.file.get(), &status) == 0 &&
                    static_cast<std::uint64_t>(status.st_size) == entry->version.bytes;
  if (!fits) return discard(std::move(cached)), std::nullopt;
  if (entry->object != object || entry->version != version) return {};
  cached.entry = std::move(*entry);
  if (check == Check::kOnce && !is_sound(cached)) return discard(std::move(cached)), std::nullopt;
  touch(cached.file.file());
  ++found_;
  return cached;
}

bool NodeCache::is_sound(const HeldCopy& cached) {
  const std::uint64_t copy = number_of(cached);
  {
    const std::lock_guard lock(mutex_);
    if (checked_.contains(copy)) return true;
  }
  const auto sum = checksum_of(cached.file.file(), cached.path);
  if (!sum || *sum != cached.entry.checksum) return false;
  const std::lock_guard lock(mutex_);
  checked_.insert(copy);
  return true;
}

void NodeCache::discard(HeldCopy cached) {
  note("a copy is damaged and is fetched again: " + object_file(cached.path));
  auto ledger = Ledger::lock(folder_, calls_);
  struct ::stat status;
  if (!ledger || ::fstat(cached.file.get(), &status) != 0) return;
  cached.file = LockedFile();
  if (!remove_unused(cached.path, calls_)) return;
  note_change();
  const auto held = ledger->disk_bytes();
  const std::uint64_t freed = disk_bytes(static_cast<std::uint64_t>(status.st_size));
  if (held) static_cast<void>(ledger->write(*held - std::min(*held, freed)));
}

Result<std::optional<HeldCopy>> NodeCache::keep(const std::string& object, const storage::Version& version, Check check,
                                                const Fill& fill, Busy busy) {
  const std::string path = copy_path(folder_, entry_name(object, version));
  if (version.bytes == 0) return std::nullopt;
  while (true) {
    if (auto cached = find(object, version, check)) return cached;
    if (!may_keep(object, version)) return std::nullopt;
    Claim claimed = claim(path, busy);
    if (!claimed.possible || (!claimed.file.valid() && busy == Busy::kLeave)) return std::nullopt;
    if (!claimed.file.valid()) continue;
    auto cached = find(object, version, check);  // completed before we acquired the claim
    if (!cached && !is_there(object_file(path)))
      return make(std::move(claimed), path, Entry{object, version, 0, now_ns()}, fill);
    if (!cached) note("read without the cache: " + object_file(path) + " is damaged while in use, or cannot be read");
    calls_.files.remove(partial_file(path).c_str());
    return cached;
  }
}

bool NodeCache::may_keep(const std::string& object, const storage::Version& version) {
  const bool fits = disk_bytes(version.bytes) <= limit_;
  if (!fits || object.size() > kMostObjectName) {
    note("read without the cache: '" + object + "' of " + amount(version.bytes) +
         (fits ? " has a name that is too long" : " does not fit into " + amount(limit_)));
    return false;
  }
  const auto plans = this->plans();
  const std::uint64_t known = next_use(plans, Entry{object, version, 0, 0});
  const std::uint64_t next = known == kNever ? 0 : known;  // as in make_room()
  const std::lock_guard lock(mutex_);
  return !refused_ || refused_->changes != changes() || refused_->plans != plans.size() || next < refused_->next ||
         disk_bytes(version.bytes) < refused_->bytes;
}

// If another process holds the lock, waits for it: afterwards the copy exists, or that process is gone.
NodeCache::Claim NodeCache::claim(const std::string& path, Busy busy) {
  const std::string partial = partial_file(path);
  const auto open_partial = [&] {
    return LockedFile(
        FileDescriptor(calls_.files.open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode)));
  };
  LockedFile file = open_partial();
  if (!file.valid() && errno == ENOENT && make_folder(folder_of(partial))) file = open_partial();
  if (!file.valid()) {
    note("read without the cache: " + storage::file_error("cannot create", partial, errno).error().message());
    return {LockedFile(), false};
  }
  if (lock_open_file(file.file(), LOCK_EX | LOCK_NB)) {
    // discards a killed writer's data: a scan counts the actual size
    if (is_named(file.file(), partial) && ::ftruncate(file.get(), 0) == 0) return {std::move(file), true};
    return {};
  }
  if (errno == EWOULDBLOCK && (busy == Busy::kLeave || lock_open_file(file.file(), LOCK_SH))) return {};
  note("read without the cache: " + storage::file_error("cannot lock", partial, errno).error().message());
  return {LockedFile(), false};
}

Result<std::optional<HeldCopy>> NodeCache::make(Claim claim, const std::string& path, Entry entry, const Fill& fill) {
  const std::uint64_t bytes = entry.version.bytes;
  if (!reserve(claim.file.file(), entry)) {
    calls_.files.remove(partial_file(path).c_str());
    return std::nullopt;
  }
  const auto give_up = [&](const Error& error) {
    note("read without the cache: " + error.message());
    release(path, disk_bytes(bytes));
  };
  // without fallocate() support, writes report a full disk
  const int refused = calls_.allocate(claim.file.file().get(), 0, static_cast<off_t>(bytes));
  if (refused == ENOSPC || refused == EDQUOT || refused == EFBIG)
    return give_up(storage::file_error("cannot keep", entry.object, refused).error()), std::nullopt;
  Output output(claim.file.file(), bytes, calls_);
  auto filled = fill(output);
  if (filled && output.left_ > 0)
    filled = storage::file_error("the object ended " + std::to_string(output.left_) + " bytes early", entry.object, 0);
  if (output.failed_) return give_up(*output.failed_), std::nullopt;
  if (!filled) {
    release(path, disk_bytes(bytes));
    return std::unexpected(std::move(filled).error());
  }
  entry.checksum = output.sum_.value();
  if (auto published = publish(path, entry); !published) return give_up(published.error()), std::nullopt;
  ++made_;
  made_bytes_ += bytes;
  HeldCopy cached{std::move(claim.file), path, std::move(entry)};
  {
    const std::lock_guard lock(mutex_);
    checked_.insert(number_of(cached));  // its checksum was computed while writing
  }
  // between the two locks the copy has none
  if (lock_open_file(cached.file.file(), LOCK_SH) && is_named(cached.file.file(), object_file(path))) return cached;
  return std::nullopt;
}

bool NodeCache::reserve(const FileDescriptor& partial, const Entry& entry) {
  auto ledger = Ledger::lock(folder_, calls_);
  auto room = ledger ? make_room(*ledger, entry) : std::unexpected(ledger.error());
  if (room && *room == Room::kMade &&
      ::ftruncate(partial.get(), static_cast<off_t>(entry.version.bytes)) != 0)  // a scan counts it from now on
    room = storage::file_error("cannot keep", entry.object, errno);
  if (!room)
    note("read without the cache: " + room.error().message());
  else if (*room == Room::kAllInUse)
    note("read without the cache: all cached copies are being read, and the limit of " + amount(limit_) +
         " is reached");
  else if (*room == Room::kNeededSooner)
    note("read without the cache: the limit of " + amount(limit_) +
         " is reached, and all cached copies are needed sooner");
  return room && *room == Room::kMade;
}

NodeCache::Plans NodeCache::plans() {
  const std::lock_guard lock(mutex_);
  std::erase_if(plans_, [](const auto& plan) { return plan.expired(); });
  Plans plans;
  for (const auto& plan : plans_)
    if (auto followed = plan.lock()) plans.push_back(std::move(followed));
  return plans;
}

std::uint64_t NodeCache::next_use(const Plans& plans, const Entry& entry) {
  std::uint64_t next = kNever;
  for (const auto& plan : plans) next = std::min(next, (*plan)(entry));
  return next;
}

// Evicts only copies that are needed later than the new one; evicting others would cause more reads. An object that
// is not in a plan was requested directly, so it is needed now.
Result<NodeCache::Room> NodeCache::make_room(Ledger& ledger, const Entry& entry) {
  const std::uint64_t bytes = disk_bytes(entry.version.bytes);
  const auto held = ledger.disk_bytes();
  if (held && *held + bytes <= limit_) {
    FEEDLINE_CHECK_OK(ledger.write(*held + bytes));
    return Room::kMade;
  }
  const auto plans = this->plans();
  const std::uint64_t known = next_use(plans, entry);
  const std::uint64_t wanted = known == kNever ? 0 : known;
  const auto is_needed_sooner = [&](const Copy& copy) {
    if (plans.empty()) return false;
    const auto other = entry_of(copy.path);
    return other && next_use(plans, *other) <= wanted;
  };
  const std::lock_guard lock(mutex_);
  std::uint64_t counted = held.value_or(0);
  bool has_scanned = false, found_sooner = false;
  const auto look = [&]() -> Result<void> {
    has_scanned = true;
    return find_victims(plans, counted);
  };
  if (!held || victims_.size() + victims_found_ / kPartOfVictims <= victims_found_) FEEDLINE_CHECK_OK(look());
  while (counted + bytes > limit_) {
    if (victims_.empty() && has_scanned) break;
    if (victims_.empty()) {
      FEEDLINE_CHECK_OK(look());
      continue;
    }
    const Copy victim = std::move(victims_.back());
    victims_.pop_back();
    if (!is_unused_since(victim)) continue;
    if (is_needed_sooner(victim)) {  // and so is every later candidate, if the list is current
      found_sooner = has_scanned;
      victims_.clear();
      continue;
    }
    if (!remove_unused(victim.path, calls_)) continue;
    counted -= std::min(counted, disk_bytes(victim.bytes));
    ++removed_;
    refused_.reset();  // there may be room for more than this
  }
  const bool has_room = counted + bytes <= limit_;
  if (!has_room && found_sooner) refused_ = Refused{changes(), plans.size(), wanted, bytes};
  FEEDLINE_CHECK_OK(ledger.write(has_room ? counted + bytes : counted));
  return has_room ? Room::kMade : found_sooner ? Room::kNeededSooner : Room::kAllInUse;
}

Result<void> NodeCache::find_victims(const Plans& plans, std::uint64_t& disk_bytes) {
  FEEDLINE_TRY(Copies copies, scan(folder_, Leftovers::kRemove, calls_));
  disk_bytes = copies.disk_bytes;
  std::map<std::string, std::uint64_t> next;
  if (!plans.empty())
    for (const Copy& copy : copies.whole) {
      const auto entry = entry_of(copy.path);
      next[copy.path] = entry ? next_use(plans, *entry) : kNever;
    }
  const auto goes_later = [&](const Copy& a, const Copy& b) {
    const std::uint64_t next_a = plans.empty() ? kNever : next[a.path], next_b = plans.empty() ? kNever : next[b.path];
    if (next_a != next_b) return next_a < next_b;
    if (a.used_ns != b.used_ns) return a.used_ns > b.used_ns;
    return a.path < b.path;
  };
  std::ranges::sort(copies.whole, goes_later);
  victims_ = std::move(copies.whole);
  victims_found_ = victims_.size();
  return {};
}

// Removes an unpublished copy and its reservation.
void NodeCache::release(const std::string& path, std::uint64_t bytes) {
  auto ledger = Ledger::lock(folder_, calls_);
  calls_.files.remove(partial_file(path).c_str());
  if (!ledger) return;
  if (const auto held = ledger->disk_bytes()) static_cast<void>(ledger->write(*held - std::min(*held, bytes)));
}

Result<void> NodeCache::publish(const std::string& path, const Entry& entry) {
  FEEDLINE_TRY(const Ledger ledger, Ledger::lock(folder_, calls_));
  memory::ByteBuffer buffer;
  FEEDLINE_CHECK_OK(write_file(entry_file(path), write_entry(entry, buffer), Flush::kNo, calls_.files));
  if (calls_.files.rename(partial_file(path).c_str(), object_file(path).c_str()) != 0) {
    const int why = errno;
    calls_.files.remove(entry_file(path).c_str());
    return storage::file_error("cannot rename to", object_file(path), why);
  }
  return {};
}

std::shared_ptr<const NextUse> NodeCache::follow(NextUse plan) {
  auto followed = std::make_shared<const NextUse>(std::move(plan));
  const std::lock_guard lock(mutex_);
  plans_.push_back(followed);
  victims_.clear();
  victims_found_ = 0;
  note_change();
  return followed;
}

NodeCache::Counts NodeCache::counts() const { return {found_, made_, made_bytes_, removed_}; }

std::string NodeCache::summary() const {
  std::string text = "cache '" + folder_ + "' of at most " + amount(limit_) + ": " + std::to_string(made_) +
                     " objects fetched, " + amount(made_bytes_) + "; copies used " + std::to_string(found_) + " times";
  if (compared_ > 0) text += "; " + std::to_string(compared_) + " fetched objects matched their expected checksums";
  for (const std::string& line : notes_.lines()) text += "; " + line;
  return text;
}

Result<void> NodeCache::Output::append(std::span<const std::byte> bytes) {
  if (bytes.size() > left_) return storage_error("the object has more bytes than its version specifies", 0);
  left_ -= bytes.size();
  sum_.add(bytes);
  while (!bytes.empty()) {
    const ssize_t written = calls_.files.write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      failed_ = storage_error("the cache's disk is full", written < 0 ? errno : ENOSPC).error();
      return std::unexpected(*failed_);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<std::shared_ptr<NodeCache>> shared_cache(const std::string& folder, CacheLimit limit) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::uint64_t, double>, std::weak_ptr<NodeCache>> open_ones;
  const std::string location = storage::local_storage()->identity(folder);
  const std::lock_guard lock(mutex);
  auto& known = open_ones[{location, limit.bytes, limit.share}];
  if (auto cache = known.lock()) return cache;
  FEEDLINE_TRY(auto cache, NodeCache::open(location, limit));
  known = cache;
  return cache;
}

}  // namespace feedline::cache
