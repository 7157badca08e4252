// SPDX-License-Identifier: Apache-2.0
#include "format/pixels/pixel_store.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "cache/own_files.h"
#include "format/checksum.h"
#include "format/pixels/pixel_record.h"
#include "storage/local_file.h"

namespace feedline::format {
namespace {

constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ: added in Linux 5.14, not in the headers of older C libraries

std::atomic_ref<std::uint64_t> shared(std::uint64_t& number) { return std::atomic_ref<std::uint64_t>(number); }

}  // namespace

PixelStore::PixelStore(cache::LockedFile file, std::string name, Kind kind, Extent extent)
    : file_(std::move(file)), name_(std::move(name)), kind_(kind), extent_(extent) {}

Result<std::unique_ptr<PixelStore>> PixelStore::map(cache::LockedFile file, std::string name, Kind kind,
                                                    Extent extent) {
  std::unique_ptr<PixelStore> store(new PixelStore(std::move(file), std::move(name), kind, extent));
  if (auto mapped = store->map_all(); !mapped) {
    Error error = std::move(mapped).error();
    error.where.shard = store->name_;
    return std::unexpected(std::move(error));
  }
  return store;
}

PixelStore::~PixelStore() {
  if (head_ != nullptr) ::munmap(head_, data_offset_);
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), extent_.mapped - data_offset_);
}

Result<void> PixelStore::map_all() {
  PixelHead head;
  struct ::stat status;
  if (::fstat(file_.get(), &status) != 0) return storage::file_error("cannot look up", name_, errno);
  if (::pread(file_.get(), &head, sizeof head, 0) != sizeof head) return data_error("not a pixel file", "format");
  FEEDLINE_CHECK_OK(check_head(head, static_cast<std::uint64_t>(status.st_size)));
  const int access = kind_ == Kind::kFinished ? PROT_READ : PROT_READ | PROT_WRITE;
  void* front = ::mmap(nullptr, head.data_offset, access, MAP_SHARED, file_.get(), 0);
  if (front == MAP_FAILED) return storage::file_error("cannot map", name_, errno);
  head_ = static_cast<PixelHead*>(front);
  data_offset_ = head.data_offset;
  const auto* bytes = static_cast<const std::byte*>(front);
  index_ = reinterpret_cast<std::uint64_t*>(static_cast<std::byte*>(front) + head.index_offset);
  const std::span<const std::byte> serialized(bytes + kPageBytes, head.contents_bytes);
  if (xxh3(serialized) != head.contents_checksum)
    return data_error("damaged pixel file: the checksum of its description does not match", "format");
  FEEDLINE_TRY(contents_, PixelContents::parse(serialized));
  if (contents_.samples != head.samples)
    return data_error("damaged pixel file: the header and the description have different numbers of samples", "format");
  if (kind_ == Kind::kFinished && head.finished == 0)
    return config_error("the pixel file is not finished: " + std::to_string(head.present) + " of " +
                        std::to_string(head.samples) +
                        " samples have been added; continue the program that was filling it");
  if (kind_ == Kind::kFinished) FEEDLINE_CHECK_OK(check_index());
  if (extent_.mapped <= data_offset_) return {};  // no space, or nothing to read
  // Also maps the range after the end of the file, so that the mapping does not move when the file grows. find() never
  // reads from this range.
  void* data = ::mmap(nullptr, extent_.mapped - data_offset_, PROT_READ, MAP_SHARED | MAP_NORESERVE, file_.get(),
                      static_cast<off_t>(data_offset_));
  if (data == MAP_FAILED && errno == ENOMEM)
    return storage::file_error("cannot map " + std::to_string(extent_.mapped - data_offset_) +
                                   " bytes; raise the limit of address space (ulimit -v), or pass a smaller budget",
                               name_, ENOMEM);
  if (data == MAP_FAILED) return storage::file_error("cannot map", name_, errno);
  data_ = static_cast<const std::byte*>(data);
  if (kind_ != Kind::kMemory) verified_ = std::vector<std::atomic<std::uint64_t>>((contents_.samples + 63) / 64);
  return {};
}

Result<void> PixelStore::check_index() const {
  const std::span<const std::uint64_t> index(index_, contents_.samples);
  if (head_->index_checksum == xxh3(std::as_bytes(index))) return {};
  return data_error("damaged pixel file: the checksum of its index does not match", "format");
}

std::atomic_ref<std::uint64_t> PixelStore::entry(std::uint64_t sample) const {
  FEEDLINE_CHECK(sample < contents_.samples);
  return shared(index_[sample]);
}

// Returns the number of bytes from the start of the file that can be accessed. Another process may truncate the file,
// and accessing the missing part would raise a signal.
Result<std::uint64_t> PixelStore::readable_bytes() const {
  if (kind_ == Kind::kMemory) return extent_.mapped;
  struct ::stat status;
  if (::fstat(file_.get(), &status) != 0) return storage::file_error("cannot look up", name_, errno);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size < data_offset_) return storage::file_error("the pixel file became shorter while it was in use", name_, 0);
  return std::min(size, extent_.mapped);
}

std::uint64_t PixelStore::present() const {
  return readable_bytes() ? shared(head_->present).load(std::memory_order_relaxed) : 0;
}
std::uint64_t PixelStore::bytes() const {
  return readable_bytes() ? shared(head_->end).load(std::memory_order_relaxed) - data_offset_ : 0;
}

Where PixelStore::where(std::uint64_t sample) const {
  Where where;
  where.shard = name_;
  where.record = sample;
  if (readable_bytes()) where.offset = entry(sample).load(std::memory_order_acquire);
  return where;
}

Error PixelStore::damaged(std::uint64_t sample, std::uint64_t offset, const std::string& how) const {
  Error error = data_error("damaged pixel file: " + how + "; delete the file and create it again", "format").error();
  error.where.shard = name_;
  error.where.record = sample;
  error.where.offset = offset;
  return error;
}

// Makes the kernel load the pages, and returns an error if that fails, because page faults would raise a signal if the
// disk fails or the file is truncated. First checks whether the pages are resident, which takes a fifth of the time.
// For photos of 256 pixels in a warm cache, the check takes 3 % of the time per sample; loading resident pages would
// take 16 %.
Result<void> PixelStore::bring_in(std::uint64_t offset, std::uint64_t bytes) const {
  static const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  constexpr std::uint64_t kPagesAtATime = 1024;
  unsigned char resident[kPagesAtATime];
  const std::uint64_t end = offset + bytes;
  for (std::uint64_t begin = offset / page_bytes * page_bytes; begin < end; begin += kPagesAtATime * page_bytes) {
    auto* from = const_cast<std::byte*>(data_) + (begin - data_offset_);
    const std::uint64_t length = std::min(end - begin, kPagesAtATime * page_bytes);
    const std::uint64_t pages = (length + page_bytes - 1) / page_bytes;
    const bool known = ::mincore(from, length, resident) == 0;
    if (known && std::all_of(resident, resident + pages, [](unsigned char page) { return (page & 1) != 0; })) continue;
    if (::madvise(from, length, kPopulateRead) != 0 && (errno == EFAULT || errno == EHWPOISON))
      return storage::file_error("cannot read mapped pages", name_, EIO);
  }
  return {};
}

// Returns the bytes of the record at `offset`, which must end before `limit`. Does not validate these bytes.
Result<std::span<const std::byte>> PixelStore::framed(std::uint64_t sample, std::uint64_t offset,
                                                      std::uint64_t limit) const {
  const bool starts_inside = offset % kRecordAlignment == 0 && offset >= data_offset_ && offset < limit &&
                             limit - offset >= sizeof(PixelRecordHead);
  if (!starts_inside) return std::unexpected(damaged(sample, offset, "a record is outside the file"));
  if (kind_ != Kind::kMemory) FEEDLINE_CHECK_OK(bring_in(offset, sizeof(PixelRecordHead)));
  const std::byte* record = data_ + (offset - data_offset_);
  PixelRecordHead head;
  std::memcpy(&head, record, sizeof head);
  if (head.bytes < sizeof head || head.bytes > limit - offset)
    return std::unexpected(damaged(sample, offset, "a record is longer than the file"));
  return std::span(record, head.bytes);
}

Result<std::span<const std::byte>> PixelStore::find(std::uint64_t sample) {
  const auto limit = [this]() -> Result<std::uint64_t> {
    FEEDLINE_TRY(const std::uint64_t bytes, readable_bytes());
    return std::min(bytes, shared(head_->end).load(std::memory_order_acquire));
  };
  FEEDLINE_TRY(const std::uint64_t before, limit());
  std::uint64_t offset = entry(sample).load(std::memory_order_acquire);
  // beyond the mapping, there are records of a process that lets the file grow larger
  if (offset == 0 || (offset >= extent_.mapped && kind_ != Kind::kFinished)) return std::span<const std::byte>();
  auto record = framed(sample, offset, before);
  if (!record && kind_ != Kind::kFinished) {  // this record may have been added after the end was read
    FEEDLINE_TRY(const std::uint64_t after, limit());
    record = framed(sample, offset, after);
    if (!record && after == extent_.mapped) return std::span<const std::byte>();  // it may end beyond the mapping
  }
  if (kind_ == Kind::kMemory) return record;
  std::atomic<std::uint64_t>& verified = verified_[sample / 64];
  const std::uint64_t bit = std::uint64_t{1} << (sample % 64);
  if (record) {
    FEEDLINE_CHECK_OK(bring_in(offset, record->size()));
    if ((verified.load(std::memory_order_relaxed) & bit) != 0) return record;
    if (is_intact(*record, sample)) {
      verified.fetch_or(bit, std::memory_order_relaxed);
      return record;
    }
    record = std::unexpected(damaged(sample, offset, "the checksum of a record does not match"));
  }
  if (kind_ == Kind::kFinished || record.error().code != ErrorCode::kData) return record;
  // The machine crashed before the record was written to disk. Since the file is unfinished, the record is created
  // again.
  if (entry(sample).compare_exchange_strong(offset, 0)) shared(head_->present).fetch_sub(1);
  return std::span<const std::byte>();
}

Result<bool> PixelStore::read(std::uint64_t sample, memory::Record& record) {
  FEEDLINE_TRY(const auto bytes, find(sample));
  if (bytes.empty()) return false;
  if (auto fields = read_record(bytes, contents_.fields, record); !fields)
    return std::unexpected(damaged(sample, where(sample).offset.value_or(0), "a record has different fields"));
  record.pin.reset();
  record.bytes_read = bytes.size();
  return true;
}

// Returns the offset at which the bytes may be written, or 0 if the file would exceed its capacity.
std::uint64_t PixelStore::claim(std::uint64_t bytes) {
  const auto end = shared(head_->end);
  std::uint64_t from = end.load(std::memory_order_relaxed);
  do {
    if (from > extent_.capacity || bytes > extent_.capacity - from) {
      full_.store(true, std::memory_order_relaxed);
      return 0;
    }
  } while (!end.compare_exchange_weak(from, from + bytes, std::memory_order_release, std::memory_order_relaxed));
  return from;
}

Result<bool> PixelStore::add(std::uint64_t sample, std::span<const std::byte> record) {
  FEEDLINE_CHECK(kind_ != Kind::kFinished && record.size() % kRecordAlignment == 0);
  FEEDLINE_CHECK_OK(readable_bytes());
  if (kind_ == Kind::kFilling && !file_.is_own()) return false;
  if (is_full() || entry(sample).load(std::memory_order_relaxed) != 0) return false;
  const std::uint64_t offset = claim(record.size());
  if (offset == 0) return false;
  FEEDLINE_CHECK_OK(cache::write_at(file_.file(), name_, offset, record));
  // The offset is stored last, so that readers that see it also see the whole record. If another thread added this
  // sample first, its record is used, and these bytes remain unused.
  std::uint64_t none = 0;
  if (!entry(sample).compare_exchange_strong(none, offset, std::memory_order_release)) return false;
  if (kind_ != Kind::kMemory)
    verified_[sample / 64].fetch_or(std::uint64_t{1} << (sample % 64), std::memory_order_relaxed);
  return shared(head_->present).fetch_add(1) + 1 == contents_.samples;
}

Result<void> PixelStore::finish() {
  FEEDLINE_CHECK(kind_ == Kind::kFilling);
  if (::fdatasync(file_.get()) != 0) return storage::file_error("cannot flush", name_, errno);
  head_->index_checksum = xxh3(std::as_bytes(std::span<const std::uint64_t>(index_, contents_.samples)));
  shared(head_->finished).store(1);
  if (::fdatasync(file_.get()) != 0) return storage::file_error("cannot flush", name_, errno);
  return {};
}

}  // namespace feedline::format
