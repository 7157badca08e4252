// SPDX-License-Identifier: Apache-2.0
// The user's maintenance operations on a node's cache.
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "cache/checksum.h"
#include "cache/node/copies.h"
#include "cache/node/entry.h"
#include "cache/own_files.h"
#include "cache/places.h"
#include "feedline/node_cache.h"

namespace feedline {

using cache::Copies;
using cache::Copy;
using cache::FolderAccess;
using cache::Ledger;
using cache::Leftovers;

namespace {

Result<void> check(const std::string& directory) {
  return cache::check_cache_folder(directory, FolderAccess::kExists, cache::node_calls());
}

// Removes the oldest copies first, until at most `bytes` are left.
Result<CacheRemoval> remove_down_to(Ledger& ledger, const std::string& directory, std::uint64_t bytes) {
  FEEDLINE_TRY(Copies copies, cache::scan(directory, Leftovers::kRemove, cache::node_calls()));
  std::ranges::sort(copies.whole, {}, [](const Copy& copy) { return std::tie(copy.used_ns, copy.path); });
  CacheRemoval removal{.disk_bytes = copies.disk_bytes};
  for (const Copy& copy : copies.whole) {
    if (removal.disk_bytes <= bytes) break;
    if (cache::remove_unused(copy.path, cache::node_calls())) {
      ++removal.objects;
      removal.disk_bytes -= std::min(removal.disk_bytes, cache::disk_bytes(copy.bytes));
    } else {
      ++removal.in_use;
    }
  }
  FEEDLINE_CHECK_OK(ledger.write(removal.disk_bytes));
  return removal;
}

}  // namespace

Result<CacheContents> list_cache(const std::string& directory) {
  FEEDLINE_CHECK_OK(check(directory));
  FEEDLINE_TRY(const Copies copies, cache::scan(directory, Leftovers::kLook, cache::node_calls()));
  CacheContents contents{.disk_bytes = copies.disk_bytes};
  for (const Copy& copy : copies.whole) {
    const auto entry = cache::entry_of(copy.path);
    const auto alone = cache::lock_named(copy.path + std::string(cache::kObject), LOCK_EX | LOCK_NB);
    contents.objects.push_back(
        {cache::last_part(copy.path), entry ? entry->object : std::string(), copy.bytes, copy.used_ns, !alone.valid()});
  }
  std::ranges::sort(contents.objects, {},
                    [](const CachedObject& object) { return std::tie(object.name, object.copy); });
  return contents;
}

Result<std::string> verify_copy(const std::string& directory, const std::string& copy) {
  FEEDLINE_CHECK_OK(check(directory));
  const std::string path = cache::copy_path(directory, copy), object = path + std::string(cache::kObject);
  {
    const auto shared = cache::lock_named(object, LOCK_SH);
    if (!shared.valid()) return std::string();
    const auto entry = cache::entry_of(path);
    FEEDLINE_TRY(const std::uint64_t sum, cache::checksum_of(shared.file(), object));
    if (entry && sum == entry->checksum) return std::string();
  }
  FEEDLINE_TRY(Ledger ledger, Ledger::lock(directory, cache::node_calls()));
  const bool removed = cache::remove_unused(path, cache::node_calls());
  FEEDLINE_TRY(const Copies left, cache::scan(directory, Leftovers::kRemove, cache::node_calls()));
  FEEDLINE_CHECK_OK(ledger.write(left.disk_bytes));
  return std::string(
      removed ? "the copy does not match its checksum and was removed"
              : "the copy does not match its checksum; another process reads the copy, so it was not removed");
}

Result<CacheRemoval> prune_cache(const std::string& directory, std::uint64_t bytes) {
  FEEDLINE_CHECK_OK(check(directory));
  FEEDLINE_TRY(Ledger ledger, Ledger::lock(directory, cache::node_calls()));
  return remove_down_to(ledger, directory, bytes);
}

Result<CacheRemoval> clear_cache(const std::string& directory) {
  FEEDLINE_CHECK_OK(check(directory));
  FEEDLINE_TRY(Ledger ledger, Ledger::lock(directory, cache::node_calls()));
  FEEDLINE_TRY(const CacheRemoval removal, remove_down_to(ledger, directory, 0));
  if (removal.disk_bytes == 0) cache::remove_folders(directory);
  return removal;
}

}  // namespace feedline
