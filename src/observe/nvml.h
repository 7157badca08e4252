// SPDX-License-Identifier: Apache-2.0
#pragma once

// The NVML functions that Feedline uses, declared according to NVML's manual. Feedline does not link to the library.

#include <cstdint>
#include <expected>
#include <string>

namespace feedline::observe {

using NvmlDevice = void*;

inline constexpr int kNvmlSuccess = 0;
inline constexpr int kNvmlNotSupported = 3;
inline constexpr int kNvmlNoPermission = 4;
inline constexpr int kNvmlInsufficientSize = 7;
inline constexpr int kNvmlDriverNotLoaded = 9;
inline constexpr int kNvmlGpuIsLost = 15;
inline constexpr int kNvmlVersionMismatch = 18;

struct NvmlUtilisation {  // percent
  unsigned gpu = 0;
  unsigned memory = 0;
};

struct NvmlMemory {  // bytes
  unsigned long long total = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};

struct NvmlProcess {
  unsigned pid = 0;
  unsigned long long used_memory = 0;
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
};

struct NvmlProcessBefore11 {  // of the call without a version in its name
  unsigned pid = 0;
  unsigned long long used_memory = 0;
};

struct NvmlPci {  // of nvmlDeviceGetPciInfo_v3
  char bus_id_of_before[16] = {};
  unsigned domain = 0, bus = 0, device = 0;
  unsigned ids[2] = {};
  char bus_id[32] = {};
};

enum NvmlCounter : int { kNvmlSent = 0, kNvmlReceived = 1 };  // from the GPU's perspective

// A pointer is nullptr if the driver does not have the function.
struct NvmlCalls {
  const char* (*error_string)(int) = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, NvmlDevice*) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*name)(NvmlDevice, char*, unsigned) = nullptr;
  int (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  int (*capability)(NvmlDevice, int*, int*) = nullptr;
  int (*mig)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  int (*utilisation)(NvmlDevice, NvmlUtilisation*) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*power)(NvmlDevice, unsigned*) = nullptr;       // mW
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;  // MHz
  int (*temperature)(NvmlDevice, int, unsigned*) = nullptr;
  int (*clock_reasons)(NvmlDevice, unsigned long long*) = nullptr;
  int (*pcie)(NvmlDevice, int, unsigned*) = nullptr;  // KB/s, over 20 ms
  int (*pcie_generation)(NvmlDevice, unsigned*) = nullptr;
  int (*pcie_width)(NvmlDevice, unsigned*) = nullptr;
  int (*pcie_generation_now)(NvmlDevice, unsigned*) = nullptr;
  int (*pcie_width_most)(NvmlDevice, unsigned*) = nullptr;
  int (*pci)(NvmlDevice, NvmlPci*) = nullptr;
  int (*nvlink)(NvmlDevice, unsigned, unsigned*) = nullptr;  // whether that link is up
  int (*processes)(NvmlDevice, unsigned*, NvmlProcess*) = nullptr;
  int (*processes_before_11)(NvmlDevice, unsigned*, NvmlProcessBefore11*) = nullptr;
};

// The reason why NVML is unavailable.
struct NvmlRefusal {
  std::string why;  // with advice
  bool is_there;    // the library exists
};

// The library, opened and initialized.
class Nvml {
 public:
  // file: a name that the dynamic linker finds, or a path.
  static std::expected<Nvml, NvmlRefusal> open(const std::string& file);
  ~Nvml();
  Nvml(Nvml&&) noexcept;
  Nvml& operator=(Nvml&&) = delete;

  const NvmlCalls& calls() const { return calls_; }
  std::string words(int status) const;

 private:
  Nvml() = default;
  NvmlCalls calls_;
};

}  // namespace feedline::observe
