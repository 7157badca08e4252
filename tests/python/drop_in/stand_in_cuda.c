// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcuda.so.1, with the calls that page-locking uses and the rules that CUDA's manual has for them.
//
// The tests play the GPU: `stand_in_copy` starts a copy that reads host memory, and nothing is done before
// `stand_in_finish`, which compares what the memory holds by then with what it held when the copy began. Every broken
// rule is counted in `violations`, in memory that forked processes share, and said on standard error.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  kSuccess = 0,
  kInvalidValue = 1,
  kDeinitialized = 4,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotReady = 600,
  kAlreadyRegistered = 712,
  kNotRegistered = 713,
  kCaptureUnsupported = 900,
};
enum { kDevices = 2, kMost = 4096, kPage = 4096, kRelaxed = 2 };

typedef struct { char* begin; char* end; } Range;
typedef struct { int device; long until; int used; } Event;
typedef struct { char* begin; size_t size; unsigned char* was; int device; long number; } Copy;

static Range ranges[kMost];
static Event events[kMost];
static Copy copies[kMost];
static int range_count, event_count, copy_count;
static long given[kDevices], done[kDevices];  // numbers of pieces of work
static int active[kDevices] = {1, 0};
static int stack[64], depth;
static int mode;
static int failing_status, capturing, ended;
static char* failing_call;
static pid_t owner;
static long calls;
static int* shared_violations;

__attribute__((constructor)) static void load(void) {
  owner = getpid();
  shared_violations = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void violation(const char* what) {
  __atomic_fetch_add(shared_violations, 1, __ATOMIC_SEQ_CST);
  fprintf(stderr, "stand-in CUDA: %s\n", what);
}

static int enter(const char* name) {
  ++calls;
  if (getpid() != owner) violation("called in a forked process");
  if (ended) return kDeinitialized;
  if (failing_call && strcmp(failing_call, name) == 0) return failing_status;
  return kSuccess;
}
#define ENTER()                               \
  do {                                        \
    int status_ = enter(__func__);            \
    if (status_ != kSuccess) return status_;  \
  } while (0)

// -- what the tests call

int stand_in_violations(void) { return *shared_violations; }
void stand_in_forgive(void) { --*shared_violations; }
long stand_in_calls(void) { return calls; }
int stand_in_ranges(void) { return range_count; }
size_t stand_in_locked(void) {
  size_t sum = 0;
  for (int i = 0; i < range_count; ++i) sum += (size_t)(ranges[i].end - ranges[i].begin);
  return sum;
}
int stand_in_events(void) { return event_count; }
void stand_in_activate(int device) { active[device] = 1; }
void stand_in_capture(int on) { capturing = on; }
void stand_in_end(void) { ended = 1; }
void stand_in_fail(const char* call, int status) {
  free(failing_call);
  failing_call = call ? strdup(call) : NULL;
  failing_status = status;
}

// The index of the range that holds `at`, -1 where none does.
static int range_of(const char* at) {
  for (int i = 0; i < range_count; ++i)
    if (ranges[i].begin <= at && at < ranges[i].end) return i;
  return -1;
}

int stand_in_is_pinned(char* at) { return range_of(at) >= 0; }

int stand_in_overlaps(char* begin, size_t size) {
  for (int i = 0; i < range_count; ++i)
    if (begin < ranges[i].end && ranges[i].begin < begin + size) return 1;
  return 0;
}

// Work of a device: reads `size` bytes at `begin`, of one range, or of none (where CUDA would have copied by now).
int stand_in_copy(int device, char* begin, size_t size) {
  int first = range_of(begin), last = range_of(begin + size - 1);
  if (first != last) {
    violation("a copy of memory that is locked in part, or by two calls");
    return kInvalidValue;
  }
  ++given[device];
  if (first < 0) return kSuccess;
  Copy* copy = &copies[copy_count++];
  *copy = (Copy){begin, size, malloc(size), device, given[device]};
  memcpy(copy->was, begin, size);
  return kSuccess;
}

// The device does all that it was given.
void stand_in_finish(int device) {
  int kept = 0;
  for (int i = 0; i < copy_count; ++i) {
    Copy copy = copies[i];
    if (copy.device != device) {
      copies[kept++] = copy;
      continue;
    }
    if (memcmp(copy.was, copy.begin, copy.size) != 0) violation("memory changed while it was read");
    free(copy.was);
  }
  copy_count = kept;
  done[device] = given[device];
}

// -- the driver's calls

int cuGetErrorName(int status, const char** name) {
  switch (status) {
    case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return kSuccess;
    case kInvalidValue: *name = "CUDA_ERROR_INVALID_VALUE"; return kSuccess;
    case kDeinitialized: *name = "CUDA_ERROR_DEINITIALIZED"; return kSuccess;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return kSuccess;
    default: *name = NULL; return kInvalidValue;
  }
}

int cuDeviceGetCount(int* count) {
  ENTER();
  *count = kDevices;
  return kSuccess;
}

int cuDeviceGet(int* device, int ordinal) {
  ENTER();
  *device = ordinal;
  return kSuccess;
}

int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* is_active) {
  ENTER();
  *flags = 0;
  *is_active = active[device];
  return kSuccess;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER();
  if (!active[device]) violation("made a context on a device that was not in use");
  *context = (void*)(intptr_t)(0x1000 + device);
  return kSuccess;
}

static int device_of(void* context) { return (int)(intptr_t)context - 0x1000; }

int cuCtxPushCurrent_v2(void* context) {
  ENTER();
  if (device_of(context) < 0 || device_of(context) >= kDevices) return kInvalidContext;
  stack[depth++] = device_of(context);
  return kSuccess;
}

int cuCtxPopCurrent_v2(void** context) {
  ENTER();
  if (depth == 0) return kInvalidContext;
  *context = (void*)(intptr_t)(0x1000 + stack[--depth]);
  return kSuccess;
}

int cuThreadExchangeStreamCaptureMode(int* exchanged) {
  ENTER();
  int before = mode;
  mode = *exchanged;
  *exchanged = before;
  return kSuccess;
}

// What CUDA forbids, or would spoil a capture with.
static void unsafe(void) {
  if (capturing && mode != kRelaxed) violation("an unsafe call while a graph is captured");
}

int cuMemHostRegister_v2(char* begin, size_t size, unsigned flags) {
  ENTER();
  unsafe();
  if (depth == 0) return kInvalidContext;
  if (flags != 1 || size == 0 || (uintptr_t)begin % kPage || size % kPage) return kInvalidValue;
  if (stand_in_overlaps(begin, size)) return kAlreadyRegistered;
  unsigned char* resident = malloc(size / kPage);
  int mapped = mincore(begin, size, resident) == 0;
  free(resident);
  if (!mapped) return kInvalidValue;
  for (size_t i = 0; i < size; i += kPage) __atomic_fetch_or(begin + i, 0, __ATOMIC_SEQ_CST);  // as locking, brings it in
  ranges[range_count++] = (Range){begin, begin + size};
  return kSuccess;
}

int cuMemHostUnregister(char* begin) {
  ENTER();
  unsafe();
  if (depth == 0) return kInvalidContext;
  int found = range_of(begin);
  if (found < 0 || ranges[found].begin != begin) return kNotRegistered;
  for (int i = 0; i < copy_count; ++i)
    if (range_of(copies[i].begin) == found) {
      violation("unlocked memory that is being read");
      return kInvalidValue;
    }
  ranges[found] = ranges[--range_count];
  return kSuccess;
}

int cuEventCreate(void** event, unsigned flags) {
  ENTER();
  if (depth == 0 || flags != 2) return kInvalidContext;
  events[++event_count] = (Event){stack[depth - 1], 0, 1};
  *event = (void*)(intptr_t)event_count;
  return kSuccess;
}

#ifndef OLD_DRIVER
int cuCtxRecordEvent(void* context, void* event) {
  ENTER();
  if (capturing) {
    violation("spoiled a capture");
    return kCaptureUnsupported;
  }
  Event* marked = &events[(intptr_t)event];
  if (!marked->used || marked->device != device_of(context)) return kInvalidHandle;
  marked->until = given[marked->device];
  return kSuccess;
}
#endif

int cuEventQuery(void* event) {
  ENTER();
  unsafe();
  Event* asked = &events[(intptr_t)event];
  if (!asked->used) return kInvalidHandle;
  return done[asked->device] >= asked->until ? kSuccess : kNotReady;
}
