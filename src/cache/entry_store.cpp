// SPDX-License-Identifier: Apache-2.0
#include "cache/entry_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <utility>

#include "cache/checksum.h"
#include "cache/file_lock.h"
#include "cache/places.h"
#include "storage/local_storage.h"
#include "storage/storage.h"

namespace feedline::cache {
namespace {

struct Head {
  std::uint64_t magic = 0, format = 0, count = 0, bytes = 0, table_sum = 0, sum = 0;
};

constexpr std::size_t kSummed = offsetof(Head, sum);
// The memory that an entry uses in addition to its bytes: a map node and an allocation.
constexpr std::uint64_t kOverhead = 96;

std::uint64_t sum_of(const Head& head) { return xxh3(std::as_bytes(std::span(&head, 1)).first(kSummed)); }

// Identifies the file at `path`: the result changes when another file replaces the file.
std::uint64_t object_at(const std::string& path) {
  struct stat at {};
  if (::stat(path.c_str(), &at) != 0) return 0;
  const std::uint64_t words[] = {at.st_dev, at.st_ino, static_cast<std::uint64_t>(at.st_size),
                                 static_cast<std::uint64_t>(at.st_mtim.tv_sec),
                                 static_cast<std::uint64_t>(at.st_mtim.tv_nsec)};
  return xxh3(std::as_bytes(std::span(words)));
}

// Collects small writes, and appends them in large pieces.
class Pieces {
 public:
  explicit Pieces(OutputFile& out) : out_(out) { buffer_.reserve(kPiece); }
  Result<void> add(std::span<const std::byte> bytes) {
    if (buffer_.size() + bytes.size() > kPiece) FEEDLINE_CHECK_OK(flush());
    if (bytes.size() > kPiece) return out_.append(bytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }
  Result<void> flush() {
    const auto flushed = out_.append(buffer_);
    buffer_.clear();
    return flushed;
  }

 private:
  static constexpr std::size_t kPiece = 1 << 20;
  OutputFile& out_;
  std::vector<std::byte> buffer_;
};

}  // namespace

std::shared_ptr<const EntryFile> EntryFile::open(const std::string& path, FrameKind kind) {
  auto made = std::make_shared<EntryFile>();
  made->path_ = path;
  made->object_ = object_at(path);
  const auto local = storage::local_storage();
  const auto stat = local->stat(path);
  if (!stat) return made;
  auto opened = local->open(path, storage::Access::kMap);
  if (!opened) return made;
  const std::shared_ptr<const storage::Reader> reader = std::move(*opened);
  const auto view = reader->view(0, stat->bytes);
  if (!view || !*view) return made;
  made->pin_ = reader;
  made->take(**view, kind);
  return made;
}

std::shared_ptr<const EntryFile> EntryFile::of_bytes(std::span<const std::byte> file, FrameKind kind) {
  auto made = std::make_shared<EntryFile>();
  made->take(file, kind);
  return made;
}

void EntryFile::take(std::span<const std::byte> file, FrameKind kind) {
  if (is_foreign(file, kind))
    lack_ = Lack::kForeign;
  else
    lack_ = parse(file, kind) ? Lack::kNone : Lack::kDamaged;
}

bool EntryFile::is_current() const { return object_at(path_) == object_; }

bool EntryFile::parse(std::span<const std::byte> file, FrameKind kind) {
  Head head;
  if (file.size() < sizeof head) return false;
  std::memcpy(&head, file.data(), sizeof head);
  if (head.magic != kind.magic || head.format != kind.format || head.sum != sum_of(head)) return false;
  const std::uint64_t left = file.size() - sizeof head;
  if (head.count > left / 16 || head.bytes != left - 16 * head.count) return false;
  const auto count = static_cast<std::size_t>(head.count);
  const auto table = file.subspan(sizeof head, 16 * count);
  if (xxh3(table) != head.table_sum) return false;
  const auto* const words = reinterpret_cast<const std::uint64_t*>(table.data());
  keys_ = {words, count}, ends_ = {words + count, count};
  entries_ = file.subspan(sizeof head + 16 * count);
  return true;
}

std::span<const std::byte> EntryFile::entry(std::size_t i) const {
  const std::uint64_t begin = i == 0 ? 0 : ends_[i - 1], end = ends_[i];
  if (begin > end || end > entries_.size()) return {};
  return entries_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

std::optional<std::span<const std::byte>> EntryFile::find(std::uint64_t key) const {
  const auto at = std::ranges::lower_bound(keys_, key);
  if (at == keys_.end() || *at != key) return std::nullopt;
  return entry(static_cast<std::size_t>(at - keys_.begin()));
}

EntryStore::EntryStore(FrameKind kind, std::vector<std::string> paths, EntryLimits limits, const SystemWrites& writes)
    : kind_(kind), paths_(std::move(paths)), limits_(limits), writes_(writes) {
  read_file();
}

EntryStore::~EntryStore() { (void)write(); }

// Requires: no other thread writes, or mutex_ is held.
void EntryStore::read_file() {
  file_ = std::make_shared<EntryFile>();
  for (const std::string& path : paths_) {
    file_ = EntryFile::open(path, kind_);
    if (file_->lack() == EntryFile::Lack::kMissing) continue;
    path_ = path;
    counts_.is_damaged |= file_->lack() == EntryFile::Lack::kDamaged;
    counts_.is_foreign |= file_->lack() == EntryFile::Lack::kForeign;
    return;
  }
  path_.clear();
}

bool EntryStore::find(std::uint64_t key, std::vector<std::byte>& entry) const {
  std::shared_ptr<const EntryFile> file;
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = pending_.find(key); at != pending_.end()) {
      entry = at->second;
      return true;
    }
    if (being_written_)
      if (const auto at = being_written_->find(key); at != being_written_->end()) {
        entry = at->second;
        return true;
      }
    file = file_;
  }
  const auto found = file->find(key);
  entry.clear();
  if (found) entry.assign(found->begin(), found->end());
  return found.has_value();
}

void EntryStore::save(std::uint64_t key, std::span<const std::byte> entry) {
  bool is_full = false;
  {
    const std::lock_guard lock(mutex_);
    std::vector<std::byte>& to = pending_[key];
    const std::uint64_t before = to.empty() ? 0 : to.size() + kOverhead;
    if (pending_bytes_ - before + entry.size() + kOverhead > 2 * limits_.most_pending) {
      if (to.empty()) pending_.erase(key);
      ++counts_.dropped;
      return;
    }
    to.assign(entry.begin(), entry.end());
    pending_bytes_ += to.size() + kOverhead - before;
    // a file that grows is written again each time, so larger ones are written less often
    is_full = pending_bytes_ > limits_.most_pending && counts_.failure.empty();
  }
  if (is_full && writing_.try_lock()) {
    writing_.unlock();
    (void)write();
  }
}

bool EntryStore::write_is_due(bool always) const {
  if (pending_.empty() || paths_.empty()) return false;
  return always || !path_.empty() || pending_bytes_ >= limits_.least_written;
}

Result<void> EntryStore::write(bool always) {
  const std::lock_guard writing(writing_);
  std::shared_ptr<const Entries> added;
  {
    const std::lock_guard lock(mutex_);
    if (!write_is_due(always)) {
      if (!path_.empty() && !file_->is_current()) read_file();
      return {};
    }
    added = being_written_ = std::make_shared<const Entries>(std::exchange(pending_, {}));
    pending_bytes_ = 0;
  }
  Result<void> written;
  for (const std::string& path : paths_) {
    written = make_folder(folder_of(path));
    if (written) written = write_to(path, *added);
    if (written) break;
  }
  const std::lock_guard lock(mutex_);
  being_written_ = nullptr;
  if (written) {
    counts_.failure.clear();
    read_file();
    return {};
  }
  counts_.failure = written.error().message();
  for (const auto& [key, entry] : *added)  // entries that were added during the write are newer
    if (pending_.try_emplace(key, entry).second) pending_bytes_ += entry.size() + kOverhead;
  return written;
}

Result<void> EntryStore::write_to(const std::string& path, const Entries& added) {
  const auto lock = FileLock::take(path + ".lock");
  if (lock.held()) remove_unfinished(path, writes_);
  const auto old = EntryFile::open(path, kind_);

  struct Item {
    std::uint64_t key;
    std::span<const std::byte> entry;
  };
  std::vector<Item> items;
  items.reserve(old->size() + added.size());
  for (std::size_t i = 0; i < old->size(); ++i)
    if (!added.contains(old->key(i))) items.push_back({old->key(i), old->entry(i)});
  for (const auto& [key, entry] : added) items.push_back({key, entry});
  std::ranges::sort(items, {}, &Item::key);

  std::vector<std::uint64_t> table(2 * items.size());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    bytes += items[i].entry.size();
    table[i] = items[i].key, table[items.size() + i] = bytes;
  }
  if (bytes > limits_.most_written)
    return storage_error("'" + path + "' would exceed its limit of " + std::to_string(limits_.most_written) + " bytes",
                         EFBIG);
  Head head{kind_.magic, kind_.format, items.size(), bytes, xxh3(std::as_bytes(std::span(table))), 0};
  head.sum = sum_of(head);

  FEEDLINE_TRY(auto out, OutputFile::create(path, writes_));
  FEEDLINE_CHECK_OK(out.append(std::as_bytes(std::span(&head, 1))));
  FEEDLINE_CHECK_OK(out.append(std::as_bytes(std::span(table))));
  Pieces pieces(out);
  for (const Item& item : items) FEEDLINE_CHECK_OK(pieces.add(item.entry));
  FEEDLINE_CHECK_OK(pieces.flush());
  return out.commit(Flush::kNo);
}

EntryStore::Counts EntryStore::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.path = path_;
  counts.entries = file_->size();
  counts.bytes = file_->bytes();
  for (const auto& [key, entry] : pending_) {
    const auto stored = file_->find(key);
    counts.entries += !stored;
    counts.bytes += entry.size();
    counts.bytes -= stored ? stored->size() : 0;
  }
  return counts;
}

}  // namespace feedline::cache
