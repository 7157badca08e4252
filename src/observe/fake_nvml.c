// SPDX-License-Identifier: Apache-2.0
// A fake libnvidia-ml.so.1 for tests. Its GPUs are described by lines of the file named by FAKE_NVML, which is read at
// every call, so a test may change it while a reader runs.
//
//   gpus 2                 number of GPUs
//   utilisation 0 37       GPU 0 is 37 % busy; likewise memory (MiB), power (mW), clock, temperature, reasons, received, sent (KB/s),
//                          capability (86), mig, generation, width, generation_now, width_most (of PCIe), bus (of PCI), nvlinks (up, of 4; 0:
//                          not supported), pid (may be repeated)
//   opening 20             starting the library takes this many ms of CPU time
//   fail CALL STATUS [GPU] the call whose name ends in CALL fails
//
// Built with -DVERY_EARLY it has only the calls of a very old driver.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kSuccess = 0, kUninitialised = 1, kInvalidArgument = 2, kInsufficientSize = 7 };
enum { kMostGpus = 16 };

typedef struct { unsigned gpu, memory; } Utilisation;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned pid; unsigned long long used_memory; unsigned gpu_instance, compute_instance; } Process;
typedef struct { unsigned pid; unsigned long long used_memory; } EarlyProcess;

static int started;
static char devices[kMostGpus];

static unsigned index_of(const void* device) { return (unsigned)((const char*)device - devices); }

// Returns the number after `key` (and `gpu`, unless negative) in the file, or `other` if there is no such line.
static unsigned long long value_of(const char* key, int gpu, unsigned long long other) {
  const char* path = getenv("FAKE_NVML");
  FILE* file = path ? fopen(path, "r") : NULL;
  if (!file) return other;
  char line[256], word[64];
  while (fgets(line, sizeof line, file)) {
    unsigned long long first = 0, second = 0;
    const int found = sscanf(line, "%63s %llu %llu", word, &first, &second);
    if (found < 2 || strcmp(word, key) != 0) continue;
    if (gpu < 0) other = first;
    if (gpu >= 0 && found == 3 && first == (unsigned long long)gpu) other = second;
  }
  fclose(file);
  return other;
}

static int failure(const char* call, int gpu) {
  const char* path = getenv("FAKE_NVML");
  FILE* file = path ? fopen(path, "r") : NULL;
  if (!file) return kSuccess;
  char line[256], word[64];
  int result = kSuccess;
  while (fgets(line, sizeof line, file)) {
    int status = 0, which = -1;
    if (sscanf(line, "fail %63s %d %d", word, &status, &which) < 2 || strcmp(word, call) != 0) continue;
    if (which < 0 || which == gpu) result = status;
  }
  fclose(file);
  return result;
}

static int enter(const char* call, const void* device) {
  if (!started) return kUninitialised;
  return failure(call, device ? (int)index_of(device) : -1);
}

#define ENTER(call, device)                           \
  do {                                                \
    const int status_ = enter(call, device);          \
    if (status_ != kSuccess) return status_;          \
  } while (0)

static int number(const char* call, const void* device, const char* key, unsigned other, unsigned* value) {
  ENTER(call, device);
  *value = (unsigned)value_of(key, (int)index_of(device), other);
  return kSuccess;
}

static unsigned long long cpu_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1000ull * (unsigned long long)now.tv_sec + (unsigned long long)now.tv_nsec / 1000000;
}

int nvmlInit_v2(void) {
  const unsigned long long until = cpu_ms() + value_of("opening", -1, 0);
  while (cpu_ms() < until) continue;
  const int status = failure("Init", -1);
  started += status == kSuccess;
  return status;
}

int nvmlShutdown(void) {
  --started;
  return kSuccess;
}

const char* nvmlErrorString(int status) {
  switch (status) {
    case 3: return "Not Supported";
    case 9: return "Driver Not Loaded";
    case 15: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    case 999: return NULL;
    default: return "Unknown Error";
  }
}

int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  ENTER("Version", NULL);
  snprintf(version, size, "570.10");
  return kSuccess;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  ENTER("Count", NULL);
  *count = (unsigned)value_of("gpus", -1, 1);
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = NULL;
  if (index >= kMostGpus) return kInvalidArgument;
  ENTER("Handle", devices + index);
  *device = devices + index;
  return kSuccess;
}

int nvmlDeviceGetName(void* device, char* name, unsigned size) {
  ENTER("Name", device);
  snprintf(name, size, "Fake GPU %u", index_of(device));
  return kSuccess;
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) {
  ENTER("UUID", device);
  snprintf(uuid, size, "GPU-00000000-0000-0000-0000-%012u", index_of(device));
  return kSuccess;
}

int nvmlDeviceGetUtilizationRates(void* device, Utilisation* rates) {
  rates->memory = 0;
  return number("Utilization", device, "utilisation", 0, &rates->gpu);
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  ENTER("Memory", device);
  memory->total = 80ull << 30;
  memory->used = value_of("memory", (int)index_of(device), 0) << 20;
  memory->free = memory->total - memory->used;
  return kSuccess;
}

#ifndef VERY_EARLY
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  ENTER("Capability", device);
  const int both = (int)value_of("capability", (int)index_of(device), 80);
  *major = both / 10;
  *minor = both % 10;
  return kSuccess;
}

int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *pending = 0;
  return number("Mig", device, "mig", 0, current);
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  return number("Power", device, "power", 60000, milliwatts);
}

int nvmlDeviceGetClockInfo(void* device, int kind, unsigned* mhz) {
  if (kind != 1) return kInvalidArgument;
  return number("Clock", device, "clock", 1410, mhz);
}

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* degrees) {
  if (sensor != 0) return kInvalidArgument;
  return number("Temperature", device, "temperature", 40, degrees);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  ENTER("Reasons", device);
  *reasons = value_of("reasons", (int)index_of(device), 0);
  return kSuccess;
}

int nvmlDeviceGetMaxPcieLinkGeneration(void* device, unsigned* generation) {
  return number("Generation", device, "generation", 4, generation);
}

int nvmlDeviceGetCurrPcieLinkWidth(void* device, unsigned* lanes) { return number("Width", device, "width", 16, lanes); }

int nvmlDeviceGetCurrPcieLinkGeneration(void* device, unsigned* generation) {
  return number("GenerationNow", device, "generation_now", 4, generation);
}

int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned* lanes) {
  return number("WidthMost", device, "width_most", 16, lanes);
}

typedef struct { char bus_id_of_before[16]; unsigned domain, bus, device, ids[2]; char bus_id[32]; } Pci;

int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  ENTER("Pci", device);
  snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0",
           (unsigned)value_of("bus", (int)index_of(device), 0x3a + index_of(device)) & 0xff);
  return kSuccess;
}

int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* up) {
  ENTER("NvLink", device);
  const unsigned links = (unsigned)value_of("nvlinks", (int)index_of(device), 0);
  if (links == 0) return 3;
  if (link >= 4) return kInvalidArgument;
  *up = link < links;
  return kSuccess;
}

int nvmlDeviceGetPcieThroughput(void* device, int counter, unsigned* kilobytes) {
  return number("Pcie", device, counter ? "received" : "sent", 0, kilobytes);
}
#endif

// Writes as many as fit and returns the total, like the real library.
static int processes(const void* device, unsigned* count, Process* rows, EarlyProcess* early_rows) {
  ENTER("Processes", device);
  const char* path = getenv("FAKE_NVML");
  FILE* file = path ? fopen(path, "r") : NULL;
  char line[256];
  unsigned there = 0;
  while (file && fgets(line, sizeof line, file)) {
    unsigned gpu = 0, pid = 0;
    if (sscanf(line, "pid %u %u", &gpu, &pid) != 2 || gpu != index_of(device)) continue;
    if (there < *count && rows) rows[there] = (Process){pid, 1ull << 30, ~0u, ~0u};
    if (there < *count && early_rows) early_rows[there] = (EarlyProcess){pid, ~0ull};
    ++there;
  }
  if (file) fclose(file);
  const int fits = there <= *count;
  *count = there;
  return fits ? kSuccess : kInsufficientSize;
}

#ifdef VERY_EARLY
int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, EarlyProcess* rows) {
  return processes(device, count, NULL, rows);
}
#else
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* rows) {
  return processes(device, count, rows, NULL);
}
#endif
