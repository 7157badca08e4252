// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcuda.so.1: every call that the engine makes, with the rules that CUDA's manual has for it, and a
// GPU that does nothing before a test lets it. fake_cuda.h says what a test does.
//
// Work waits in its stream, in order; streams go on in any order that their events allow. Whoever waits for an event
// has the streams go on until it is past. What a rule forbids is counted, with its words:
//
//   memory      a copy from memory that is not page-locked, or to memory that is not there, or of another device; page-
//               locked memory that is freed, or written, while a copy still reads it; what is read before it is written;
//               a copy of the training loop's from memory that is locked in part, or by two calls
//   contexts    a call without the context of what it is about; a context that is pushed and not popped
//   capture     a call that would spoil a CUDA graph that some thread captures
//   processes   a call in a process that was forked since the driver was started
//
// Memory of a device is mapped twice: where the engine sees it nobody may read or write, and the fake has it elsewhere.
#include "tests/fake_cuda/fake_cuda.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

// The kernels themselves, as a loop over their grid.
#include "src/device/cuda/kernels/pixel_job.h"

#define FEEDLINE_DEVICE
#define FEEDLINE_ROLLED
#include "src/device/cuda/kernels/pixel_kernels-inl.h"

#include "src/device/cuda/kernels/cached_rows-inl.h"

#include "src/device/cuda/kernels/cached_colours-inl.h"

namespace {

namespace kernels = feedline::device::cuda;

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kDeinitialized = 4;
constexpr int kNoDevice = 100, kInvalidDevice = 101, kInvalidImage = 200, kInvalidContext = 201;
constexpr int kInvalidHandle = 400, kNotFound = 500, kNotReady = 600;
constexpr int kAlreadyRegistered = 712, kNotRegistered = 713;
constexpr int kCaptureUnsupported = 900, kCaptureIsolation = 905, kRelaxed = 2;

struct Event {
  int device = 0;
  std::uint64_t asked = 0, done = 0;  // numbers of its records: it is past where the last one is done
};
struct Work {
  enum Kind { kCopy, kTake, kRecord, kWait, kExpect, kKernel, kCachedRows, kColours, kJpeg } kind = kRecord;
  std::uint64_t to = 0;
  const char* from = nullptr;
  std::size_t bytes = 0;
  std::uint64_t sum = 0;  // of what it reads, when it was given
  int value = 0;
  std::shared_ptr<Event> event;
  std::uint64_t number = 0;
  kernels::PixelJob job = {};
  int element = 0;  // of the kernel
  kernels::CachedRowsJob cached = {};
  unsigned blocks = 0;
  std::function<void()> act = {};  // of nvJPEG
};
struct Stream {
  int device = 0;
  bool is_engines = true;
  bool is_destroyed = false;
  bool is_capturing = false;
  std::deque<Work> work;
};
struct Memory {
  std::size_t bytes = 0;
  int device = 0;
  char* seen = nullptr;  // where the fake has it
};

struct World {
  int devices = 2;
  std::size_t bytes_each = std::size_t{1} << 30;
  int version = 12060;
  bool held = false, started = false, ended = false;
  pid_t owner = 0;
  std::map<std::uint64_t, Memory> memory;
  std::map<const char*, std::size_t> pinned;
  std::set<const char*> registered;  // of those that are pinned: somebody else's
  // What was freed goes round, as mapping takes longer than all else. By whether it is a device's, and size.
  std::map<std::pair<bool, std::size_t>, std::vector<std::pair<std::uint64_t, char*>>> mapped;
  std::vector<std::shared_ptr<Stream>> streams;
  std::map<void*, std::shared_ptr<Event>> events;
  std::map<int, int> retained, lost;
  std::set<int> others;  // devices whose context somebody else has made
  int made = 0;          // contexts, by the engine
  std::map<std::string, long> calls;
  std::string failing;
  long failing_at = 0;
  int failing_status = 0;
  std::vector<std::string> violations;
  std::string words;
  long waits = 0;
  int modules = 0;
  int capability = 80;         // of the devices
  int defaults_capturing = 0;  // of the default streams
  std::uintptr_t next_event = 0x5000;
};

// For the life of the process, as the driver's own.
World& world() {
  static auto& made = *new World;
  return made;
}
std::mutex& guard() {
  static auto& made = *new std::mutex;
  return made;
}
thread_local std::vector<int> stack;  // devices of the contexts that were pushed
thread_local int capture_mode = 0;

void violation(const std::string& what) {
  world().violations.push_back(what);
  std::fprintf(stderr, "fake CUDA: %s\n", what.c_str());
}

std::uint64_t sum_of(const char* data, std::size_t bytes) {
  std::uint64_t sum = 1469598103934665603ull;  // FNV-1a, by eight bytes where there are
  for (; bytes >= 8; bytes -= 8, data += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    sum = (sum ^ word) * 1099511628211ull;
  }
  for (; bytes > 0; --bytes, ++data) sum = (sum ^ static_cast<unsigned char>(*data)) * 1099511628211ull;
  return sum;
}

// The block that holds all of these bytes; nullptr: there is none.
const Memory* memory_at(std::uint64_t address, std::size_t bytes, std::uint64_t* begin = nullptr) {
  auto found = world().memory.upper_bound(address);
  if (found == world().memory.begin()) return nullptr;
  --found;
  if (begin != nullptr) *begin = found->first;
  return address + bytes <= found->first + found->second.bytes ? &found->second : nullptr;
}

char* seen_at(std::uint64_t address, std::size_t bytes) {
  std::uint64_t begin = 0;
  const Memory* memory = memory_at(address, bytes, &begin);
  return memory == nullptr ? nullptr : memory->seen + (address - begin);
}

// Where the page-locked range begins that holds the byte; nullptr: it is not locked.
const char* range_of(const char* at) {
  auto found = world().pinned.upper_bound(at);
  if (found == world().pinned.begin()) return nullptr;
  --found;
  return at < found->first + found->second ? found->first : nullptr;
}

bool is_pinned(const char* data, std::size_t bytes) {
  const char* const range = range_of(data);
  return range != nullptr && data + bytes <= range + world().pinned.at(range);
}

bool overlaps_pinned(const char* data, std::size_t bytes) {
  const auto behind = world().pinned.lower_bound(data + bytes);
  if (behind == world().pinned.begin()) return false;
  const auto last = std::prev(behind);
  return data < last->first + last->second;
}

// That something is still to copy from.
bool is_awaited(const char* data, std::size_t bytes) {
  for (const auto& stream : world().streams)
    for (const Work& work : stream->work)
      if ((work.kind == Work::kCopy || work.kind == Work::kTake) && data <= work.from && work.from < data + bytes)
        return true;
  return false;
}

// ---- the GPU ----

bool can_go_on(const Stream& stream) {
  if (stream.work.empty() || world().lost.contains(stream.device)) return false;
  const Work& work = stream.work.front();
  return work.kind != Work::kWait || work.event->done >= work.number;
}

template <typename Kind>
void run_grid(const kernels::PixelJob& job, unsigned blocks) {
  typename Kind::Bits tables[kernels::kMostChannels * 256];
  for (unsigned block = 0; block < blocks; ++block) {
    for (unsigned thread = 0; thread < kernels::kThreads; ++thread) kernels::fetch_tables(job, thread, tables);
    for (unsigned thread = 0; thread < kernels::kThreads; ++thread) kernels::fill<Kind>(job, block, thread, tables);
  }
}

void run_kernel(const Work& work) {
  constexpr std::size_t kElementBytes[] = {1, 4, 2, 2};
  kernels::PixelJob job = work.job;
  const std::size_t bytes = kElementBytes[work.element];
  bool is_there = true;
  const auto here = [&](const void* data, std::size_t length) -> char* {
    if (data == nullptr) return nullptr;
    char* const at = seen_at(reinterpret_cast<std::uint64_t>(data), length);
    is_there = is_there && at != nullptr;
    return at;
  };
  job.in = reinterpret_cast<const std::uint8_t*>(here(job.in, job.rows * job.in_stride));
  job.out = here(job.out, job.rows * job.out_stride);
  job.tables = here(job.tables, job.channels * 256 * bytes);
  job.mixed = reinterpret_cast<const kernels::MixedRow*>(here(job.mixed, job.rows * sizeof(kernels::MixedRow)));
  if (is_there && job.inputs != nullptr) {
    const auto* const row =
        reinterpret_cast<const kernels::PixelRow*>(here(job.inputs, job.rows * sizeof(kernels::PixelRow)));
    std::uint32_t named = 0;
    for (std::uint32_t i = 0; is_there && i < job.rows; ++i)
      named = std::max(named, row[i].first_rectangle + row[i].rectangles);
    job.inputs = row;
    job.rectangles =
        reinterpret_cast<const kernels::Rectangle*>(here(job.rectangles, named * sizeof(kernels::Rectangle)));
  }
  if (!is_there) return violation("a kernel was given memory that is not there");
  if (work.element == 0) run_grid<kernels::Bytes>(job, work.blocks);
  if (work.element == 1) run_grid<kernels::Floats>(job, work.blocks);
  if (work.element == 2) run_grid<kernels::Halves>(job, work.blocks);
  if (work.element == 3) run_grid<kernels::Bfloats>(job, work.blocks);
}

// Addresses of images are in the rows: a copy of these has what the fake sees.
void run_cached_rows(const Work& work) {
  kernels::CachedRowsJob job = work.cached;
  const char* const rows = seen_at(reinterpret_cast<std::uint64_t>(job.in), job.rows * job.in_stride);
  char* const out = seen_at(reinterpret_cast<std::uint64_t>(job.out), job.rows * job.out_stride);
  if (rows == nullptr || out == nullptr) return violation("a kernel was given memory that is not there");
  std::vector<std::uint64_t> copied((job.rows * job.in_stride + 7) / 8);
  char* const bytes = reinterpret_cast<char*>(copied.data());
  std::memcpy(bytes, rows, job.rows * job.in_stride);
  for (std::uint64_t i = 0; i < job.rows; ++i) {
    auto& row = *reinterpret_cast<kernels::CachedRow*>(bytes + i * job.in_stride);
    if (row.pixels == 0) continue;
    const std::uint64_t lines = static_cast<std::uint64_t>(row.top) + static_cast<std::uint64_t>(row.height);
    const char* const image = seen_at(row.pixels, lines * row.stride);
    if (image == nullptr) return violation("a kernel was given an image that is not there");
    for (const auto& stream : world().streams)
      for (const Work& other : stream->work)
        if ((other.kind == Work::kCopy || other.kind == Work::kJpeg) && other.to < row.pixels + lines * row.stride &&
            row.pixels < other.to + other.bytes)
          violation("a kernel reads an image that is still to be written");
    row.pixels = reinterpret_cast<std::uint64_t>(image);
  }
  job.in = reinterpret_cast<const std::uint8_t*>(bytes);
  job.out = reinterpret_cast<std::uint8_t*>(out);
  for (unsigned block = 0; block < work.blocks; ++block)
    for (unsigned thread = 0; thread < kernels::kThreads; ++thread) kernels::fill_cached(job, block, thread);
}

void run_colours(const Work& work) {
  kernels::CachedRowsJob job = work.cached;
  job.in = reinterpret_cast<std::uint8_t*>(seen_at(reinterpret_cast<std::uint64_t>(job.in), job.rows * job.in_stride));
  job.out =
      reinterpret_cast<std::uint8_t*>(seen_at(reinterpret_cast<std::uint64_t>(job.out), job.rows * job.out_stride));
  if (job.in == nullptr || job.out == nullptr) return violation("a kernel was given memory that is not there");
  for (unsigned block = 0; block < work.blocks; ++block) {
    const kernels::CachedRow& row = kernels::cached_row(job, block);
    for (unsigned i = 0; i < row.colours; ++i) {
      std::uint32_t sums[kernels::kThreads];
      for (unsigned thread = 0; thread < kernels::kThreads; ++thread)
        sums[thread] = kernels::sum_greys(job, block, thread);
      const std::uint32_t mean = kernels::mean_grey(job, sums);
      for (unsigned thread = 0; thread < kernels::kThreads; ++thread)
        kernels::change_pixels(job, block, thread, row.colour[i], mean);
    }
  }
}

void run(const Work& work) {
  if (work.kind == Work::kKernel) run_kernel(work);
  if (work.kind == Work::kCachedRows) run_cached_rows(work);
  if (work.kind == Work::kColours) run_colours(work);
  if (work.kind == Work::kJpeg) work.act();
  if (work.kind == Work::kRecord) work.event->done = std::max(work.event->done, work.number);
  if (work.kind == Work::kCopy) {
    char* to = seen_at(work.to, work.bytes);
    if (to == nullptr) return violation("a copy wrote to memory of the GPU that was freed");
    if (!is_pinned(work.from, work.bytes)) return violation("a copy read page-locked memory that was freed");
    if (sum_of(work.from, work.bytes) != work.sum)
      violation("page-locked memory was written before the copy that reads it was done");
    std::memcpy(to, work.from, work.bytes);
  }
  if (work.kind == Work::kTake && sum_of(work.from, work.bytes) != work.sum)
    violation("page-locked memory was written before the training loop's copy of it was done");
  if (work.kind == Work::kExpect) {
    const char* at = seen_at(work.to, work.bytes);
    if (at == nullptr) return violation("a kernel read memory of the GPU that was freed");
    for (std::size_t i = 0; i < work.bytes; ++i)
      if (static_cast<unsigned char>(at[i]) != work.value)
        return violation("a kernel found " + std::to_string(static_cast<unsigned char>(at[i])) + " and not " +
                         std::to_string(work.value) + " at byte " + std::to_string(i));
  }
}

bool step(std::uint64_t choice) {
  std::vector<Stream*> able;
  for (const auto& stream : world().streams)
    if (can_go_on(*stream)) able.push_back(stream.get());
  if (able.empty()) return false;
  Stream& stream = *able[choice % able.size()];
  const Work work = std::move(stream.work.front());
  stream.work.pop_front();
  run(work);
  std::erase_if(world().streams, [](const auto& one) { return one->is_destroyed && one->work.empty(); });
  return true;
}

void finish() {
  while (step(0)) {
  }
}

void give(Stream& stream, Work work) {
  stream.work.push_back(std::move(work));
  if (!world().held) finish();
}

// ---- what every call does first ----

int enter(const char* name) {
  World& w = world();
  const long so_far = ++w.calls[name];
  if (!w.started && std::strcmp(name, "cuInit") != 0 && std::strcmp(name, "cuDriverGetVersion") != 0)
    return kNotInitialized;
  if (w.started && getpid() != w.owner) violation(std::string(name) + " in a process that was forked");
  if (w.ended) return kDeinitialized;
  if (w.failing == name && so_far == w.failing_at) return w.failing_status;
  return kSuccess;
}

bool any_captures() {
  return world().defaults_capturing != 0 ||
         std::ranges::any_of(world().streams, [](const auto& stream) { return stream->is_capturing; });
}

void unsafe(const char* name) {
  if (any_captures() && capture_mode != kRelaxed) violation(std::string(name) + " spoils a graph that is captured");
}

// Of a call that needs a context: the device's status.
int in_context(const char* name) {
  if (stack.empty()) {
    violation(std::string(name) + " without a context");
    return kInvalidContext;
  }
  const auto lost = world().lost.find(stack.back());
  return lost == world().lost.end() ? kSuccess : lost->second;
}

#define ENTER()                         \
  const std::lock_guard lock_(guard()); \
  if (const int status_ = enter(__func__)) return status_
#define ENTER_CONTEXT() \
  ENTER();              \
  if (const int status_ = in_context(__func__)) return status_

Stream* stream_of(void* handle) {
  const auto found = std::ranges::find(world().streams, handle, [](const auto& one) -> void* { return one.get(); });
  return found == world().streams.end() || (*found)->is_destroyed ? nullptr : found->get();
}

// Memory of a device, by its address and where the fake has it; or of the host. nullptr: there is none.
std::pair<std::uint64_t, char*> map(bool is_devices, std::size_t bytes) {
  auto& there = world().mapped[{is_devices, bytes}];
  if (!there.empty()) {
    const auto one = there.back();
    there.pop_back();
    return one;
  }
  const int kind = is_devices ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  const int file = is_devices ? memfd_create("fake_cuda", 0) : -1;
  if (is_devices && (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0)) return {};
  void* seen = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, file, 0);
  void* hidden = is_devices ? mmap(nullptr, bytes, PROT_NONE, kind, file, 0) : nullptr;
  if (is_devices) close(file);
  if (seen == MAP_FAILED || hidden == MAP_FAILED) return {};
  return {reinterpret_cast<std::uint64_t>(hidden), static_cast<char*>(seen)};
}

void count_wait() { ++world().waits; }

long jpeg_things();
void forget_jpegs();

}  // namespace

// ---- for tests ----

void fake_cuda_reset(int devices, std::size_t bytes_each, int version) {
  const std::lock_guard lock(guard());
  World& w = world();
  for (auto& [address, memory] : w.memory) w.mapped[{true, memory.bytes}].push_back({address, memory.seen});
  for (auto& [data, bytes] : w.pinned)
    if (!w.registered.contains(data)) w.mapped[{false, bytes}].push_back({0, const_cast<char*>(data)});
  World fresh;
  fresh.devices = devices;
  fresh.bytes_each = bytes_each;
  fresh.version = version;
  fresh.started = w.started;
  fresh.owner = w.owner;
  fresh.next_event = w.next_event;
  fresh.mapped = std::move(w.mapped);
  w = std::move(fresh);
  forget_jpegs();
}

void fake_cuda_hold(int held) {
  const std::lock_guard lock(guard());
  world().held = held != 0;
  if (held == 0) finish();
}

int fake_cuda_step(std::uint64_t choice) {
  const std::lock_guard lock(guard());
  return step(choice) ? 1 : 0;
}

void* fake_cuda_stream(int device) {
  const std::lock_guard lock(guard());
  world().streams.push_back(std::make_shared<Stream>(Stream{device, false, false, false, {}}));
  return world().streams.back().get();
}

void fake_cuda_expect(void* stream, std::uint64_t address, std::size_t bytes, int value) {
  const std::lock_guard lock(guard());
  Stream* found = stream_of(stream);
  if (found == nullptr) return violation("a kernel on no stream");
  give(*found, Work{.kind = Work::kExpect, .to = address, .bytes = bytes, .value = value});
}

int fake_cuda_read(std::uint64_t address, void* to, std::size_t bytes) {
  const std::lock_guard lock(guard());
  const char* from = seen_at(address, bytes);
  if (from == nullptr) return 0;
  for (const auto& stream : world().streams)
    for (const Work& work : stream->work) {
      if (work.kind == Work::kCopy && work.to < address + bytes && address < work.to + work.bytes)
        violation("the host read what a copy is still to write");
      const auto made = reinterpret_cast<std::uint64_t>(work.job.out);
      if (work.kind == Work::kKernel && made < address + bytes && address < made + work.job.rows * work.job.out_stride)
        violation("the host read what a kernel is still to write");
    }
  std::memcpy(to, from, bytes);
  return 1;
}

void fake_cuda_take(void* stream, const void* data, std::size_t bytes) {
  const std::lock_guard lock(guard());
  Stream* found = stream_of(stream);
  const auto* from = static_cast<const char*>(data);
  if (found == nullptr) return violation("a copy of the training loop's on no stream");
  if (range_of(from) != range_of(from + bytes - 1))
    return violation("a copy of the training loop's from memory that is locked in part, or by two calls");
  if (range_of(from) == nullptr) return;  // it is done when the call returns
  give(*found, Work{.kind = Work::kTake, .from = from, .bytes = bytes, .sum = sum_of(from, bytes)});
}

void fake_cuda_finish(int device) {
  const std::lock_guard lock(guard());
  for (bool went_on = true; went_on;) {
    went_on = false;
    for (const auto& stream : std::vector(world().streams))
      for (; stream->device == device && can_go_on(*stream); went_on = true) {
        const Work work = std::move(stream->work.front());
        stream->work.pop_front();
        run(work);
      }
  }
}

int fake_cuda_is_pinned(const void* data, std::size_t bytes) {
  const std::lock_guard lock(guard());
  return overlaps_pinned(static_cast<const char*>(data), bytes) ? 1 : 0;
}

void fake_cuda_use(int device) {
  const std::lock_guard lock(guard());
  world().others.insert(device);
}

void fake_cuda_fail(const char* call, int nth, int status) {
  const std::lock_guard lock(guard());
  World& w = world();
  w.failing = call == nullptr ? "" : call;
  w.failing_at = call == nullptr ? 0 : w.calls[call] + nth;
  w.failing_status = status;
}

long fake_cuda_calls(const char* call) {
  const std::lock_guard lock(guard());
  return world().calls[call];
}

void fake_cuda_lose(int device, int status) {
  const std::lock_guard lock(guard());
  world().lost[device] = status;
  if (status == kSuccess) world().lost.erase(device);
}

void fake_cuda_capture(void* stream, int capturing) {
  const std::lock_guard lock(guard());
  if (Stream* found = stream_of(stream))
    found->is_capturing = capturing != 0;
  else
    world().defaults_capturing = capturing;
}

void fake_cuda_end(int ended) {
  const std::lock_guard lock(guard());
  world().ended = ended != 0;
}

void fake_cuda_forgive() {
  const std::lock_guard lock(guard());
  world().violations.clear();
}

int fake_cuda_violations() {
  const std::lock_guard lock(guard());
  return static_cast<int>(world().violations.size());
}

const char* fake_cuda_words() {
  const std::lock_guard lock(guard());
  std::string& words = world().words;
  words.clear();
  for (const std::string& one : world().violations) words += one + "\n";
  return words.c_str();
}

long fake_cuda_count(const char* what_asked) {
  const std::lock_guard lock(guard());
  const World& w = world();
  const std::string what = what_asked;
  std::size_t sum = 0;
  if (what == "pinned") return static_cast<long>(w.pinned.size());
  if (what == "memory") return static_cast<long>(w.memory.size());
  if (what == "events") return static_cast<long>(w.events.size());
  if (what == "waits") return w.waits;
  if (what == "modules") return w.modules;
  if (what == "made") return w.made;
  if (what == "jpegs") return jpeg_things();
  if (what == "pinned_bytes")
    for (const auto& [data, bytes] : w.pinned) sum += bytes;
  if (what == "memory_bytes")
    for (const auto& [address, memory] : w.memory) sum += memory.bytes;
  if (what == "contexts")
    for (const auto& [device, times] : w.retained) sum += static_cast<std::size_t>(times);
  if (what == "streams")
    for (const auto& stream : w.streams) sum += stream->is_engines && !stream->is_destroyed;
  if (what == "pending")
    for (const auto& stream : w.streams) sum += stream->work.size();
  return static_cast<long>(sum);
}

// ---- the driver's calls ----

extern "C" {

int cuInit(unsigned) {
  ENTER();
  World& w = world();
  if (w.devices == 0) return kNoDevice;
  w.started = true;
  w.owner = getpid();
  return kSuccess;
}

int cuDriverGetVersion(int* version) {
  ENTER();
  *version = world().version;
  return kSuccess;
}

int cuGetErrorName(int status, const char** name) {
  static const std::map<int, const char*> names = {{0, "CUDA_SUCCESS"},
                                                   {1, "CUDA_ERROR_INVALID_VALUE"},
                                                   {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                   {3, "CUDA_ERROR_NOT_INITIALIZED"},
                                                   {4, "CUDA_ERROR_DEINITIALIZED"},
                                                   {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
                                                   {100, "CUDA_ERROR_NO_DEVICE"},
                                                   {101, "CUDA_ERROR_INVALID_DEVICE"},
                                                   {201, "CUDA_ERROR_INVALID_CONTEXT"},
                                                   {400, "CUDA_ERROR_INVALID_HANDLE"},
                                                   {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                                   {719, "CUDA_ERROR_LAUNCH_FAILED"},
                                                   {802, "CUDA_ERROR_SYSTEM_NOT_READY"},
                                                   {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}};
  const auto found = names.find(status);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? kInvalidValue : kSuccess;
}

int cuGetErrorString(int, const char** words) {
  *words = nullptr;
  return kInvalidValue;
}

int cuDeviceGetCount(int* count) {
  ENTER();
  *count = world().devices;
  return kSuccess;
}

int cuDeviceGet(int* device, int ordinal) {
  ENTER();
  if (ordinal < 0 || ordinal >= world().devices) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

int cuDeviceGetName(char* name, int size, int device) {
  ENTER();
  const char* mig = std::getenv("FAKE_CUDA_MIG");
  std::snprintf(name, static_cast<std::size_t>(size), "Fake GPU %d%s", device, mig == nullptr ? "" : " MIG 1g.5gb");
  return kSuccess;
}

int cuDeviceGetPCIBusId(char* id, int size, int device) {
  ENTER();
  std::snprintf(id, static_cast<std::size_t>(size), "0000:C%d:00.0", device);
  return kSuccess;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  ENTER();
  if (device < 0 || device >= world().devices) return kInvalidDevice;
  if (attribute != 75 && attribute != 76) return kInvalidValue;
  *value = attribute == 75 ? world().capability / 10 : world().capability % 10;
  return kSuccess;
}

int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  ENTER();
  *flags = 0;
  *active = world().retained[device] > 0 || world().others.contains(device);
  return kSuccess;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER();
  if (world().retained[device] == 0 && !world().others.contains(device)) ++world().made;
  ++world().retained[device];
  *context = reinterpret_cast<void*>(static_cast<std::intptr_t>(0x1000 + device));
  return kSuccess;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER();
  if (--world().retained[device] < 0) violation("a context was released that was not retained");
  return kSuccess;
}

int cuCtxPushCurrent_v2(void* context) {
  ENTER();
  const auto device = static_cast<int>(reinterpret_cast<std::intptr_t>(context)) - 0x1000;
  if (device < 0 || device >= world().devices) return kInvalidContext;
  if (world().retained[device] <= 0) violation("a context was used that is not retained");
  stack.push_back(device);
  return kSuccess;
}

int cuCtxPopCurrent_v2(void** context) {
  const std::lock_guard lock(guard());
  const int status = enter(__func__);
  if (stack.empty()) return kInvalidContext;
  *context = reinterpret_cast<void*>(static_cast<std::intptr_t>(0x1000 + stack.back()));
  stack.pop_back();  // also where it fails: what the caller does then is the same
  return status;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  ENTER();
  std::swap(*mode, capture_mode);
  return kSuccess;
}

int cuMemHostAlloc(void** data, std::size_t bytes, unsigned flags) {
  ENTER_CONTEXT();
  unsafe(__func__);
  if (bytes == 0 || flags != 1) return kInvalidValue;
  const auto mapped = map(false, bytes);
  if (mapped.second == nullptr) return kOutOfMemory;
  world().pinned[mapped.second] = bytes;
  *data = mapped.second;
  return kSuccess;
}

int cuMemFreeHost(void* data) {
  ENTER_CONTEXT();
  unsafe(__func__);
  const auto found = world().pinned.find(static_cast<const char*>(data));
  if (found == world().pinned.end() || world().registered.contains(found->first)) {
    violation("page-locked memory was freed that is none");
    return kInvalidValue;
  }
  if (is_awaited(found->first, found->second)) violation("page-locked memory was freed that a copy is still to read");
  world().mapped[{false, found->second}].push_back({0, static_cast<char*>(data)});
  world().pinned.erase(found);
  return kSuccess;
}

int cuMemHostRegister_v2(void* data, std::size_t bytes, unsigned flags) {
  ENTER_CONTEXT();
  unsafe(__func__);
  auto* const begin = static_cast<char*>(data);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (flags != 1 || bytes == 0 || reinterpret_cast<std::uintptr_t>(begin) % page != 0 || bytes % page != 0)
    return kInvalidValue;
  if (overlaps_pinned(begin, bytes)) return kAlreadyRegistered;
  std::vector<unsigned char> resident(bytes / page);
  if (mincore(begin, bytes, resident.data()) != 0) return kInvalidValue;  // nothing is mapped there
  // as locking, brings it in
  for (std::size_t i = 0; i < bytes; i += page) __atomic_fetch_or(begin + i, char{0}, __ATOMIC_SEQ_CST);
  world().pinned[begin] = bytes;
  world().registered.insert(begin);
  return kSuccess;
}

int cuMemHostUnregister(void* data) {
  ENTER_CONTEXT();
  unsafe(__func__);
  const auto* const begin = static_cast<const char*>(data);
  if (!world().registered.contains(begin)) return kNotRegistered;
  if (is_awaited(begin, world().pinned[begin])) {
    violation("memory was unlocked that a copy is still to read");
    return kInvalidValue;
  }
  world().registered.erase(begin);
  world().pinned.erase(begin);
  return kSuccess;
}

int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  ENTER_CONTEXT();
  unsafe(__func__);
  std::size_t used = bytes;
  for (const auto& [other, memory] : world().memory)
    if (memory.device == stack.back()) used += memory.bytes;
  if (bytes == 0) return kInvalidValue;
  if (used > world().bytes_each || used < bytes) return kOutOfMemory;
  const auto mapped = map(true, bytes);
  if (mapped.second == nullptr) return kOutOfMemory;
  *address = mapped.first;
  world().memory[*address] = {bytes, stack.back(), mapped.second};
  return kSuccess;
}

// Waits for all that the device was given, as CUDA does.
int cuMemFree_v2(std::uint64_t address) {
  ENTER_CONTEXT();
  unsafe(__func__);
  const auto found = world().memory.find(address);
  if (found == world().memory.end()) {
    violation("memory of the GPU was freed that is none");
    return kInvalidValue;
  }
  if (found->second.device != stack.back()) violation("memory of the GPU was freed in another's context");
  count_wait();
  finish();
  world().mapped[{true, found->second.bytes}].push_back({address, found->second.seen});
  world().memory.erase(found);
  return kSuccess;
}

int cuMemGetInfo_v2(std::size_t* left, std::size_t* all) {
  ENTER_CONTEXT();
  *all = *left = world().bytes_each;
  for (const auto& [address, memory] : world().memory)
    if (memory.device == stack.back()) *left -= memory.bytes;
  return kSuccess;
}

int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void* handle) {
  ENTER_CONTEXT();
  Stream* stream = stream_of(handle);
  if (stream == nullptr || stream->device != stack.back()) {
    violation("a copy on no stream of the context's device");
    return kInvalidHandle;
  }
  const auto* data = static_cast<const char*>(from);
  const Memory* memory = memory_at(to, bytes);
  if (memory == nullptr || memory->device != stack.back()) {
    violation("a copy to memory that is not of the context's device");
    return kInvalidValue;
  }
  if (!is_pinned(data, bytes)) violation("an asynchronous copy from memory that is not page-locked");
  give(*stream, Work{.kind = Work::kCopy, .to = to, .from = data, .bytes = bytes, .sum = sum_of(data, bytes)});
  return kSuccess;
}

// A module is its place in this list, and so is a function of it: what the engine gives is looked at no further.
int cuModuleLoadData(void** module, const void* image) {
  ENTER_CONTEXT();
  unsafe(__func__);
  if (std::memcmp(image,
                  "\x7f"
                  "ELF",
                  4) != 0 &&
      std::strstr(static_cast<const char*>(image), ".version") == nullptr)
    return kInvalidImage;
  ++world().modules;
  *module = reinterpret_cast<void*>(0x7000);
  return kSuccess;
}

int cuModuleUnload(void* module) {
  ENTER_CONTEXT();
  unsafe(__func__);
  if (reinterpret_cast<std::uintptr_t>(module) != 0x7000 || --world().modules < 0)
    violation("a module was unloaded that is none");
  for (const auto& stream : world().streams)
    for (const Work& work : stream->work)
      if (work.kind == Work::kKernel && stream->device == stack.back() && world().modules == 0)
        violation("kernels were unloaded that are still to run");
  return kSuccess;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER_CONTEXT();
  constexpr const char* kNames[] = {"feedline_pixels_uint8",    "feedline_pixels_float32", "feedline_pixels_float16",
                                    "feedline_pixels_bfloat16", "feedline_cached_rows",    "feedline_cached_colours"};
  if (reinterpret_cast<std::uintptr_t>(module) != 0x7000) return kInvalidHandle;
  for (std::uintptr_t i = 0; i < 6; ++i)
    if (std::strcmp(name, kNames[i]) == 0) *function = reinterpret_cast<void*>(0x7100 + i);
  return *function == nullptr ? kNotFound : kSuccess;
}

int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned,
                   void* handle, void** arguments, void**) {
  ENTER_CONTEXT();
  Stream* stream = stream_of(handle);
  const auto number = reinterpret_cast<std::uintptr_t>(function);
  if (stream == nullptr || stream->device != stack.back() || number < 0x7100 || number >= 0x7106) {
    violation("a kernel that is none, or on no stream of the context's device");
    return kInvalidHandle;
  }
  if (threads != kernels::kThreads) violation("a kernel with a block of another size than it was written for");
  Work work{.kind = number == 0x7104 ? Work::kCachedRows : number == 0x7105 ? Work::kColours : Work::kKernel};
  if (work.kind == Work::kKernel) std::memcpy(&work.job, arguments[0], sizeof work.job);
  if (work.kind != Work::kKernel) std::memcpy(&work.cached, arguments[0], sizeof work.cached);
  work.element = static_cast<int>(number - 0x7100);
  work.blocks = blocks;
  give(*stream, std::move(work));
  return kSuccess;
}

int cuStreamCreateWithPriority(void** handle, unsigned flags, int priority) {
  ENTER_CONTEXT();
  unsafe(__func__);
  if (flags != 1) violation("a stream that waits for the default stream");
  if (priority >= 0) violation("a stream whose kernels wait behind those of the training loop");
  world().streams.push_back(std::make_shared<Stream>(Stream{stack.back(), true, false, false, {}}));
  *handle = world().streams.back().get();
  return kSuccess;
}

int cuStreamDestroy_v2(void* handle) {
  ENTER_CONTEXT();
  Stream* stream = stream_of(handle);
  if (stream == nullptr) {
    violation("a stream was destroyed that is none");
    return kInvalidHandle;
  }
  stream->is_destroyed = true;
  std::erase_if(world().streams, [](const auto& one) { return one->is_destroyed && one->work.empty(); });
  return kSuccess;
}

int cuStreamSynchronize(void* handle) {
  ENTER_CONTEXT();
  unsafe(__func__);
  if (stream_of(handle) == nullptr) return kInvalidHandle;
  count_wait();
  finish();
  return kSuccess;
}

int cuStreamWaitEvent(void* handle, void* event_handle, unsigned) {
  ENTER_CONTEXT();
  const auto event = world().events.find(event_handle);
  if (event == world().events.end()) {
    violation("a stream waits for an event that is none");
    return kInvalidHandle;
  }
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number == 1 || number == 2) {  // the default streams, on which tests launch nothing
    return world().defaults_capturing != 0 ? kCaptureIsolation : kSuccess;
  }
  Stream* stream = stream_of(handle);
  if (stream == nullptr) {
    violation("no stream waits for an event");
    return kInvalidHandle;
  }
  if (stream->is_capturing) {
    violation("a stream that is captured waits for work outside of the graph");
    return kCaptureIsolation;
  }
  give(*stream, Work{.kind = Work::kWait, .event = event->second, .number = event->second->asked});
  return kSuccess;
}

int cuStreamIsCapturing(void* handle, int* capturing) {
  ENTER_CONTEXT();
  const Stream* stream = stream_of(handle);
  *capturing = stream != nullptr ? stream->is_capturing : world().defaults_capturing;
  return kSuccess;
}

int cuEventCreate(void** handle, unsigned flags) {
  ENTER_CONTEXT();
  if (flags != 2) violation("an event that keeps the time");
  *handle = reinterpret_cast<void*>(world().next_event++);
  world().events[*handle] = std::make_shared<Event>(Event{stack.back(), 0, 0});
  return kSuccess;
}

int cuEventDestroy_v2(void* handle) {
  ENTER_CONTEXT();
  if (world().events.erase(handle) == 0) {
    violation("an event was destroyed that is none");
    return kInvalidHandle;
  }
  return kSuccess;
}

int cuEventRecord(void* handle, void* stream_handle) {
  ENTER_CONTEXT();
  const auto event = world().events.find(handle);
  const auto number = reinterpret_cast<std::uintptr_t>(stream_handle);
  Stream* stream = stream_of(stream_handle);
  if (event == world().events.end() || (stream == nullptr && number != 1 && number != 2)) {
    violation("an event or a stream that is none");
    return kInvalidHandle;
  }
  if (stream != nullptr && stream->device != event->second->device) {
    violation("an event was recorded on a stream of another device");
    return kInvalidHandle;
  }
  const std::uint64_t record = ++event->second->asked;
  if (stream == nullptr) {
    event->second->done = record;
    return kSuccess;
  }
  give(*stream, Work{.kind = Work::kRecord, .event = event->second, .number = record});
  return kSuccess;
}

int cuEventQuery(void* handle) {
  ENTER_CONTEXT();
  unsafe(__func__);
  const auto event = world().events.find(handle);
  if (event == world().events.end()) return kInvalidHandle;
  return event->second->done >= event->second->asked ? kSuccess : kNotReady;
}

int cuEventSynchronize(void* handle) {
  ENTER_CONTEXT();
  unsafe(__func__);
  const auto event = world().events.find(handle);
  if (event == world().events.end()) return kInvalidHandle;
  count_wait();
  const std::shared_ptr<Event> awaited = event->second;
  std::uint64_t choice = 0;
  while (awaited->done < awaited->asked)
    if (!step(choice++)) {
      violation("the host waits for an event that never comes");
      break;
    }
  return kSuccess;
}

#ifndef EARLY_DRIVER
// After what every stream of the context was given: one record on each, and the last one ends it.
int cuCtxRecordEvent(void* context, void* handle) {
  ENTER_CONTEXT();
  const auto event = world().events.find(handle);
  const auto device = static_cast<int>(reinterpret_cast<std::intptr_t>(context)) - 0x1000;
  if (event == world().events.end() || event->second->device != device) return kInvalidHandle;
  if (any_captures()) {
    violation("cuCtxRecordEvent spoils a graph that is captured");
    return kCaptureUnsupported;
  }
  std::vector<Stream*> busy;
  for (const auto& stream : world().streams)
    if (stream->device == device && !stream->work.empty()) busy.push_back(stream.get());
  event->second->asked = 1;
  if (busy.empty()) event->second->done = 1;
  // every stream ends a part of it, and a stream of the fake's own waits for all parts
  auto joined = std::make_shared<Stream>(Stream{device, false, true, false, {}});
  for (Stream* stream : busy) {
    auto part = std::make_shared<Event>(Event{device, 1, 0});
    stream->work.push_back(Work{.kind = Work::kRecord, .event = part, .number = 1});
    joined->work.push_back(Work{.kind = Work::kWait, .event = part, .number = 1});
  }
  if (!busy.empty()) {
    joined->work.push_back(Work{.kind = Work::kRecord, .event = event->second, .number = 1});
    world().streams.push_back(std::move(joined));
    if (!world().held) finish();
  }
  return kSuccess;
}
#endif
}

#include "tests/fake_cuda/fake_nvjpeg-inl.h"
