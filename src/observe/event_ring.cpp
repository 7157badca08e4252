// SPDX-License-Identifier: Apache-2.0
// The file: one Header, then `capacity` slots. A writer changes a slot between two stores of its sequence number, so a
// reader can distinguish complete events from those that are being written or that a killed process left incomplete.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "feedline/observe.h"

namespace feedline {
namespace {

using Counter = std::atomic<std::uint64_t>;
static_assert(Counter::is_always_lock_free, "the file is shared between processes");

constexpr std::uint64_t kMagic = 0x31474e52'4c444546;  // "FEDLRNG1"
constexpr std::uint64_t kLargestCapacity = 1 << 20;
constexpr std::uint64_t kWriting = ~std::uint64_t{0};

struct Totals {
  Counter count, wall_ns, cpu_ns, longest_ns, a;
  std::array<Counter, kEventBuckets> wall;
};

struct Header {
  Counter magic;  // stored last, after everything else
  std::uint64_t capacity;
  std::int32_t pid;
  std::int32_t parent;
  std::uint64_t created_ns;
  Counter written;
  std::array<Totals, kEventKinds> totals;
};

struct Slot {
  Counter sequence;  // 1 + the event's number; 0 if never written
  std::array<Counter, 6> words;
};

std::size_t file_size(std::uint64_t capacity) { return sizeof(Header) + capacity * sizeof(Slot); }

class Mapping {
 public:
  Mapping(void* address, std::size_t size) : address_(address), size_(size) {}
  ~Mapping() {
    if (address_) ::munmap(address_, size_);
  }
  Mapping(Mapping&& other) noexcept : address_(std::exchange(other.address_, nullptr)), size_(other.size_) {}
  Mapping& operator=(Mapping&&) = delete;

  Header& header() const { return *static_cast<Header*>(address_); }
  Slot& slot(std::uint64_t i) const {
    return reinterpret_cast<Slot*>(static_cast<std::byte*>(address_) + sizeof(Header))[i];
  }

 private:
  void* address_;
  std::size_t size_;
};

Result<Mapping> map_file(const std::string& path, int flags, std::optional<std::size_t> wanted) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (file < 0) return storage_error("cannot open the event file " + path, errno);
  int failed = 0;
  std::size_t size = 0;
  struct stat status {};
  if (wanted && ::ftruncate(file, static_cast<off_t>(*wanted)) != 0) failed = errno;
  if (failed == 0 && ::fstat(file, &status) != 0) failed = errno;
  if (failed == 0) size = static_cast<std::size_t>(status.st_size);
  void* address = MAP_FAILED;
  if (failed == 0 && size >= sizeof(Header)) {
    const int protection = wanted ? PROT_READ | PROT_WRITE : PROT_READ;
    address = ::mmap(nullptr, size, protection, MAP_SHARED, file, 0);
    if (address == MAP_FAILED) failed = errno;
  }
  ::close(file);
  if (failed != 0) return storage_error("cannot map the event file " + path, failed);
  if (address == MAP_FAILED) return data_error(path + " is too short for an event file", "observe");
  return Mapping(address, size);
}

void raise_to(Counter& counter, std::uint64_t value) {
  std::uint64_t seen = counter.load(std::memory_order_relaxed);
  while (seen < value && !counter.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

std::size_t bucket_of(std::uint64_t ns) {
  return std::min<std::size_t>(ns == 0 ? 0 : static_cast<std::size_t>(std::bit_width(ns)) - 1, kEventBuckets - 1);
}

EventTotals plain(const Totals& totals) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  EventTotals plain{totals.count.load(kRelaxed),      totals.wall_ns.load(kRelaxed), totals.cpu_ns.load(kRelaxed),
                    totals.longest_ns.load(kRelaxed), totals.a.load(kRelaxed),       {}};
  for (std::size_t i = 0; i < plain.wall.size(); ++i) plain.wall[i] = totals.wall[i].load(kRelaxed);
  return plain;
}

// Returns nullopt if the event is missing, overwritten or incomplete.
std::optional<Event> take(const Slot& slot, std::uint64_t number) {
  if (slot.sequence.load(std::memory_order_acquire) != number + 1) return std::nullopt;
  std::array<std::uint64_t, 6> w;
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = slot.words[i].load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (slot.sequence.load(std::memory_order_relaxed) != number + 1) return std::nullopt;
  return Event{w[0], w[1], w[2], w[3], w[4], static_cast<std::uint32_t>(w[5] >> 32), static_cast<std::uint32_t>(w[5])};
}

}  // namespace

struct EventRing::Impl {
  Mapping mapping;
};

EventRing::EventRing(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EventRing::~EventRing() = default;
EventRing::EventRing(EventRing&&) noexcept = default;
EventRing& EventRing::operator=(EventRing&&) noexcept = default;

Result<EventRing> EventRing::create(const std::string& path, std::uint64_t capacity) {
  if (!std::has_single_bit(capacity) || capacity > kLargestCapacity)
    return config_error("an event ring's capacity must be a power of two up to " + std::to_string(kLargestCapacity) +
                        ", not " + std::to_string(capacity));
  FEEDLINE_TRY(Mapping mapping, map_file(path, O_RDWR | O_CREAT | O_EXCL, file_size(capacity)));
  Header& header = mapping.header();  // new files are zero-filled, and so are the counters
  header.capacity = capacity;
  header.pid = ::getpid();
  header.parent = ::getppid();
  header.created_ns = base::now_ns();
  header.magic.store(kMagic, std::memory_order_release);
  return EventRing(std::make_unique<Impl>(std::move(mapping)));
}

void EventRing::record(std::uint32_t kind, std::uint64_t begin_ns, std::uint64_t cpu_ns, std::uint64_t a,
                       std::uint64_t b, bool keep) {
  if (kind >= kEventKinds) return;
  const std::uint64_t now = base::now_ns();
  const std::uint64_t wall_ns = now > begin_ns ? now - begin_ns : 0;
  Header& header = impl_->mapping.header();
  Totals& totals = header.totals[kind];
  totals.count.fetch_add(1, std::memory_order_relaxed);
  totals.wall_ns.fetch_add(wall_ns, std::memory_order_relaxed);
  totals.cpu_ns.fetch_add(cpu_ns, std::memory_order_relaxed);
  totals.a.fetch_add(a, std::memory_order_relaxed);
  totals.wall[bucket_of(wall_ns)].fetch_add(1, std::memory_order_relaxed);
  raise_to(totals.longest_ns, wall_ns);
  if (!keep) return;
  const std::uint64_t number = header.written.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = impl_->mapping.slot(number & (header.capacity - 1));
  slot.sequence.store(kWriting, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);  // no word may become visible under the previous event's number
  static thread_local const auto thread = static_cast<std::uint64_t>(::gettid());
  const std::uint64_t words[6] = {begin_ns, wall_ns, cpu_ns, a, b, thread << 32 | kind};
  for (std::size_t i = 0; i < 6; ++i) slot.words[i].store(words[i], std::memory_order_relaxed);
  slot.sequence.store(number + 1, std::memory_order_release);
}

Result<RecordedEvents> read_events(const std::string& path) {
  FEEDLINE_TRY(const Mapping mapping, map_file(path, O_RDONLY, std::nullopt));
  const Header& header = mapping.header();
  struct stat status {};
  if (header.magic.load(std::memory_order_acquire) != kMagic || !std::has_single_bit(header.capacity) ||
      header.capacity > kLargestCapacity || ::stat(path.c_str(), &status) != 0 ||
      static_cast<std::size_t>(status.st_size) < file_size(header.capacity))
    return data_error(path + " is not an event file, or its process is still creating it", "observe");
  RecordedEvents recorded;
  recorded.pid = header.pid;
  recorded.parent = header.parent;
  recorded.created_ns = header.created_ns;
  recorded.written = header.written.load(std::memory_order_acquire);
  const std::uint64_t first = recorded.written > header.capacity ? recorded.written - header.capacity : 0;
  for (std::uint64_t number = first; number < recorded.written; ++number)
    if (const auto event = take(mapping.slot(number & (header.capacity - 1)), number))
      recorded.events.push_back(*event);
  for (std::size_t i = 0; i < recorded.totals.size(); ++i) recorded.totals[i] = plain(header.totals[i]);
  return recorded;
}

}  // namespace feedline
