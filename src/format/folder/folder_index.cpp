// SPDX-License-Identifier: Apache-2.0
#include "format/folder/folder_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/check.h"
#include "format/checksum.h"
#include "storage/local_folders.h"
#include "storage/output_file.h"

namespace feedline::format {
namespace {

// An index file, little-endian. S samples, C classes, F folders, P bytes of paths, N bytes of names.
//
//      0  8       "feedlfld"
//      8  8       version
//     16  8 x 5   S, C, F, P, N
//     56  8       fingerprint of the data set
//     64  8 x S   end of each sample's path in the paths
//         8 x C   samples of the classes up to and with each
//         8 x C+F+1  end of each name in the names: the classes, the folders relative to the root, the root
//         16 x F  size and modification time of each folder, from before it was listed
//         P       paths, padded to 8
//         N       names, padded to 8
//     -8  8       XXH3-64 of everything before
static_assert(std::endian::native == std::endian::little, "index files are read in place");

constexpr std::uint64_t kMagic = 0x64'6c'66'6c'64'65'65'66;  // "feedlfld"
constexpr std::uint64_t kVersion = 1;

struct Head {
  std::uint64_t magic, version, samples, classes, folders, path_bytes, name_bytes, fingerprint;
};
static_assert(sizeof(Head) == 64);
constexpr std::size_t kSumBytes = 8;

constexpr std::uint64_t pad8(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

// The size of the file that such a head describes; nullopt where no file could be that large.
std::optional<std::uint64_t> file_size(const Head& head) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;  // far above any index, far below overflow
  for (const std::uint64_t count : {head.samples, head.classes, head.folders, head.path_bytes, head.name_bytes})
    if (count > kMost) return {};
  return sizeof(Head) + 8 * (head.samples + 2 * head.classes + head.folders + 1) + 16 * head.folders +
         pad8(head.path_bytes) + pad8(head.name_bytes) + kSumBytes;
}

// Is each value at least the one before, and the last exactly `end`?
bool ascends_to(std::span<const std::uint64_t> values, std::uint64_t end) {
  return std::ranges::is_sorted(values) && !values.empty() && values.back() == end;
}

// Not the root's path: a copy of the data set elsewhere is the same data set.
std::uint64_t fingerprint_of(const FolderListing& listing) {
  Fingerprint fingerprint;
  fingerprint.add("folder");
  for (const std::string& name : listing.classes) fingerprint.add(name);
  fingerprint.add(listing.class_ends);
  fingerprint.add(listing.paths);
  fingerprint.add(listing.path_ends);
  return fingerprint.value();
}

Result<std::string> place_of(const std::string& root, const std::string& directory) {
  std::string folder = directory;
  if (folder.empty()) {
    FEEDLINE_TRY(folder, storage::cache_folder());
    folder += "/index";
  }
  return folder + "/" + std::filesystem::path(root).filename().string() + "-" + path_digest(root) +
         ".feedline-folder-index";
}

// Appends sections to a buffer that has room for all of them.
class Writer {
 public:
  explicit Writer(std::span<std::byte> room) : room_(room) {}
  void add(const void* data, std::size_t bytes) {
    if (bytes > 0) std::memcpy(room_.data() + done_, data, bytes);
    const std::size_t padded = pad8(bytes);
    std::memset(room_.data() + done_ + bytes, 0, padded - bytes);
    done_ += padded;
  }
  template <typename Value>
  void add(const std::vector<Value>& values) {
    add(values.data(), values.size() * sizeof(Value));
  }
  std::span<const std::byte> done() const { return room_.first(done_); }

 private:
  std::span<std::byte> room_;
  std::size_t done_ = 0;
};

}  // namespace

FolderIndex FolderIndex::build(const std::string& root, const FolderListing& listing) {
  std::string names;
  std::vector<std::uint64_t> name_ends;
  const auto add_name = [&](const std::string& name) { name_ends.push_back(names.append(name).size()); };
  for (const std::string& name : listing.classes) add_name(name);
  std::vector<FolderStat> stats;
  for (const FolderListing::Folder& folder : listing.folders) {
    add_name(folder.path);
    stats.push_back({folder.stat.bytes, folder.stat.mtime_ns});
  }
  add_name(root);
  const Head head{kMagic,
                  kVersion,
                  listing.samples(),
                  listing.classes.size(),
                  stats.size(),
                  listing.paths.size(),
                  names.size(),
                  fingerprint_of(listing)};
  FolderIndex index;
  const std::size_t bytes = *file_size(head);
  Writer writer(index.buffer_.resize(bytes));
  writer.add(&head, sizeof head);
  writer.add(listing.path_ends);
  writer.add(listing.class_ends);
  writer.add(name_ends);
  writer.add(stats);
  writer.add(listing.paths.data(), listing.paths.size());
  writer.add(names.data(), names.size());
  const std::uint64_t sum = xxh3(writer.done());
  writer.add(&sum, sizeof sum);
  index.file_ = writer.done();
  FEEDLINE_CHECK(index.file_.size() == bytes && index.find_sections());
  return index;
}

std::optional<FolderIndex> FolderIndex::parse(std::span<const std::byte> file, std::shared_ptr<const void> pin,
                                              const std::string& root) {
  FolderIndex index;
  index.file_ = file;
  index.pin_ = std::move(pin);
  if (!index.find_sections() || !index.is_consistent()) return {};
  if (piece(index.names_, index.name_ends_, index.name_ends_.size() - 1) != root) return {};
  return index;
}

// The one place that knows the order of the sections.
bool FolderIndex::find_sections() {
  Head head;
  if (file_.size() < sizeof head) return false;
  std::memcpy(&head, file_.data(), sizeof head);
  if (head.magic != kMagic || head.version != kVersion || file_size(head) != file_.size()) return false;
  fingerprint_ = head.fingerprint;
  const std::byte* next = file_.data() + sizeof head;
  const auto take = [&next]<typename Value>(std::span<const Value>& section, std::uint64_t count) {
    section = {reinterpret_cast<const Value*>(next), static_cast<std::size_t>(count)};
    next += count * sizeof(Value);
  };
  take(path_ends_, head.samples);
  take(class_ends_, head.classes);
  take(name_ends_, head.classes + head.folders + 1);
  take(folders_, head.folders);
  paths_ = {reinterpret_cast<const char*>(next), static_cast<std::size_t>(head.path_bytes)};
  next += pad8(head.path_bytes);
  names_ = {reinterpret_cast<const char*>(next), static_cast<std::size_t>(head.name_bytes)};
  return true;
}

bool FolderIndex::is_consistent() const {
  std::uint64_t sum = 0;
  std::memcpy(&sum, file_.data() + file_.size() - kSumBytes, kSumBytes);
  return sum == xxh3(file_.first(file_.size() - kSumBytes)) && ascends_to(path_ends_, paths_.size()) &&
         ascends_to(class_ends_, samples()) && ascends_to(name_ends_, names_.size());
}

bool FolderIndex::is_current(const storage::Storage& storage, const std::string& root) const {
  for (std::size_t i = 0; i < folders_.size(); ++i) {
    const std::string_view path = piece(names_, name_ends_, classes() + i);
    const auto stat = storage.stat(path.empty() ? root : std::string(root).append("/").append(path));
    if (!stat || *stat != storage::ObjectStat{folders_[i].bytes, folders_[i].mtime_ns}) return false;
  }
  return true;
}

std::int64_t FolderIndex::changed_ns() const {
  return folders_.empty() ? 0 : std::ranges::max_element(folders_, {}, &FolderStat::mtime_ns)->mtime_ns;
}

std::uint64_t FolderIndex::class_of(std::uint64_t sample) const {
  return static_cast<std::uint64_t>(std::ranges::upper_bound(class_ends_, sample) - class_ends_.begin());
}

std::optional<FolderIndex> load_folder_index(const storage::Storage& storage, const std::string& root,
                                             const std::string& directory) {
  const auto place = place_of(root, directory);
  if (!place) return {};
  const auto stat = storage::local_storage()->stat(*place);
  if (!stat) return {};
  auto opened = storage::local_storage()->open(*place, storage::Access::kMap);
  if (!opened) return {};
  const std::shared_ptr<const storage::Reader> reader = std::move(*opened);
  const auto view = reader->view(0, stat->bytes);
  if (!view || !*view) return {};
  auto index = FolderIndex::parse(**view, reader, root);
  if (!index || !index->is_current(storage, root)) return {};
  return index;
}

Result<void> save_folder_index(const FolderIndex& index, const std::string& root, const std::string& directory) {
  Result<void> saved;
  if (const auto place = place_of(root, directory); place) {
    saved = storage::make_folder(std::filesystem::path(*place).parent_path().string());
    if (saved) saved = storage::write_file(*place, index.file_bytes(), storage::Flush::kNo);
  }
  return directory.empty() ? Result<void>() : saved;
}

}  // namespace feedline::format
