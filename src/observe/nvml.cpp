// SPDX-License-Identifier: Apache-2.0
#include "observe/nvml.h"

#include <dlfcn.h>

#include <initializer_list>
#include <utility>

namespace feedline::observe {
namespace {

// Looks up the first of `names` that the library exports: the latest version of a function is listed first.
template <typename Call>
void find(void* library, Call& call, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (void* found = ::dlsym(library, name)) {
      call = reinterpret_cast<Call>(found);
      return;
    }
}

NvmlCalls calls_of(void* library) {
  NvmlCalls calls;
  find(library, calls.error_string, {"nvmlErrorString"});
  find(library, calls.init, {"nvmlInit_v2", "nvmlInit"});
  find(library, calls.shutdown, {"nvmlShutdown"});
  find(library, calls.count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  find(library, calls.handle, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  find(library, calls.driver_version, {"nvmlSystemGetDriverVersion"});
  find(library, calls.name, {"nvmlDeviceGetName"});
  find(library, calls.uuid, {"nvmlDeviceGetUUID"});
  find(library, calls.capability, {"nvmlDeviceGetCudaComputeCapability"});
  find(library, calls.mig, {"nvmlDeviceGetMigMode"});
  find(library, calls.utilisation, {"nvmlDeviceGetUtilizationRates"});
  find(library, calls.memory, {"nvmlDeviceGetMemoryInfo"});
  find(library, calls.power, {"nvmlDeviceGetPowerUsage"});
  find(library, calls.clock, {"nvmlDeviceGetClockInfo"});
  find(library, calls.temperature, {"nvmlDeviceGetTemperature"});
  find(library, calls.clock_reasons,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  find(library, calls.pcie, {"nvmlDeviceGetPcieThroughput"});
  find(library, calls.pcie_generation, {"nvmlDeviceGetMaxPcieLinkGeneration"});
  find(library, calls.pcie_width, {"nvmlDeviceGetCurrPcieLinkWidth"});
  find(library, calls.pcie_generation_now, {"nvmlDeviceGetCurrPcieLinkGeneration"});
  find(library, calls.pcie_width_most, {"nvmlDeviceGetMaxPcieLinkWidth"});
  find(library, calls.pci, {"nvmlDeviceGetPciInfo_v3"});
  find(library, calls.nvlink, {"nvmlDeviceGetNvLinkState"});
  find(library, calls.processes,
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  find(library, calls.processes_before_11, {"nvmlDeviceGetComputeRunningProcesses"});
  return calls;
}

std::string advice(int status) {
  switch (status) {
    case kNvmlNoPermission:
      return "; this user lacks permission for /dev/nvidiactl";
    case kNvmlDriverNotLoaded:
      return "; load the driver's kernel module, or pass the container its GPUs (docker run --gpus all)";
    case kNvmlVersionMismatch:
      return "; the driver was updated but the old kernel module is loaded: reboot, or reload the module";
    default:
      return "; check that nvidia-smi reports the same";
  }
}

}  // namespace

std::expected<Nvml, NvmlRefusal> Nvml::open(const std::string& file) {
  // The library remains open, because it may have started threads and registered exit handlers.
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return std::unexpected(
        NvmlRefusal{"there is no " + file + ": the NVIDIA driver is not installed, or the container lacks it", false});
  Nvml nvml;
  nvml.calls_ = calls_of(library);
  const NvmlCalls& calls = nvml.calls_;
  const bool usable = calls.init && calls.shutdown && calls.count && calls.handle;
  const int status = usable ? calls.init() : kNvmlSuccess;
  if (!usable || status != kNvmlSuccess) {
    nvml.calls_.shutdown = nullptr;
    if (!usable) return std::unexpected(NvmlRefusal{file + " lacks NVML's calls", true});
    return std::unexpected(NvmlRefusal{"NVML does not start: " + nvml.words(status) + advice(status), true});
  }
  return nvml;
}

Nvml::~Nvml() {
  if (calls_.shutdown) calls_.shutdown();
}

Nvml::Nvml(Nvml&& other) noexcept : calls_(std::exchange(other.calls_, NvmlCalls{})) {}

std::string Nvml::words(int status) const {
  const char* text = calls_.error_string ? calls_.error_string(status) : nullptr;
  return text ? text : "error " + std::to_string(status);
}

}  // namespace feedline::observe
