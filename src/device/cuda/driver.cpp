// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

namespace feedline::device::cuda {
namespace {

constexpr const char* kUsual = "libcuda.so.1";
constexpr const char* kHostInstead = "; or omit device= to leave batches in host memory";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string of_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Returns advice for the user about this status.
std::string advice(int status) {
  switch (status) {
    case kOutOfMemory:
      return "; lower batch_size or memory_budget, or release batches that you hold";
    case kNotInitialized:
      return "; CUDA was started before this process was forked: start processes with \"spawn\", or start CUDA in the "
             "child only";
    case kDeinitialized:
      return "; the process is ending";
    case kStubLibrary:
      return "; the library is the stub that programs are linked with: remove its folder from LD_LIBRARY_PATH";
    case kDeviceUnavailable:
      return "; another process has exclusive use of the GPU (nvidia-smi -q -d COMPUTE)";
    case kNoDevice:
      return "; pass the container its GPUs (docker run --gpus all), or correct CUDA_VISIBLE_DEVICES";
    case kUncorrectableEcc:
    case kIllegalAddress:
    case kLaunchFailed:
    case kUnknown:
      return "; the GPU does no more work for this process: restart it from its last checkpoint, and search dmesg "
             "for \"Xid\"";
    case kSystemNotReady:
      return "; start the fabric manager (nvidia-fabricmanager), and check nvidia-smi";
    case kSystemDriverMismatch:
      return "; the driver was updated but the old kernel module is loaded: reboot, or reload the module";
    case kDriverTooEarlyForDevice:
      return "; update the GPU's driver";
    default:
      return "; check nvidia-smi for the cause";
  }
}

std::string file_of_driver() {
  const std::string named = environment("FEEDLINE_CUDA_DRIVER");
  return named.empty() ? kUsual : named;
}

Error for_a_loader(Error error) {
  error.code = ErrorCode::kConfig;
  error.what = "device: " + error.what + kHostInstead;
  return error;
}

template <typename Call>
bool find(void* library, Call& call, const char* name) {
  call = reinterpret_cast<Call>(::dlsym(library, name));
  return call != nullptr;
}

}  // namespace

Result<std::shared_ptr<const Driver>> Driver::open() {
  // never destroyed: memory freed at exit needs its driver
  static auto& opened = *new std::map<std::string, std::shared_ptr<const Driver>>;
  static auto& mutex = *new std::mutex;
  const std::string file = file_of_driver();
  const std::lock_guard lock(mutex);
  if (const auto found = opened.find(file); found != opened.end()) {
    FEEDLINE_CHECK_OK(found->second->check_process());
    return found->second;
  }
  FEEDLINE_TRY(auto driver, load(file));
  return opened[file] = std::move(driver);
}

Result<std::shared_ptr<const Driver>> Driver::load(const std::string& file) {
  std::shared_ptr<Driver> driver(new Driver);
  if (auto found = driver->look_up(file); !found) return std::unexpected(for_a_loader(std::move(found).error()));
  if (auto started = driver->start(); !started) {
    Error error = std::move(started).error();
    error.what = "CUDA does not start: " + error.what;
    return std::unexpected(for_a_loader(std::move(error)));
  }
  if (driver->devices_ == 0)
    return config_error("device: the driver reports no GPU to this process" + advice(kNoDevice) +
                        (driver->visible_.empty() ? "" : " (it is \"" + driver->visible_ + "\")") + kHostInstead);
  return std::shared_ptr<const Driver>(std::move(driver));
}

Result<void> Driver::look() {
  Driver driver;
  FEEDLINE_CHECK_OK(driver.look_up(file_of_driver()));
  if (driver.calls_.context_record != nullptr) return {};
  return config_error("the GPU's driver has no cuCtxRecordEvent, which was added in CUDA 12.5; update the driver");
}

Result<void> Driver::look_up(const std::string& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return config_error(
        "there is no " + file +
        ": no NVIDIA driver is installed, or the container was started without GPUs (docker run --gpus all)");
  const char* missing = nullptr;
#define FEEDLINE_CUDA_FIND(member, name, arguments) \
  if (!find(library, calls_.member, name)) missing = name;
  FEEDLINE_CUDA_LATER_CALLS(FEEDLINE_CUDA_FIND)
  missing = nullptr;
  FEEDLINE_CUDA_CALLS(FEEDLINE_CUDA_FIND)
#undef FEEDLINE_CUDA_FIND
  if (missing != nullptr)
    return config_error(file + " has no " + missing + ", which has existed since CUDA " + of_version(kEarliestDriver) +
                        " or earlier; update the GPU's driver");
  return {};
}

Result<void> Driver::start() {
  pid_ = getpid();
  visible_ = environment("CUDA_VISIBLE_DEVICES");
  const int started = calls_.init(0);
  if (started != kNoDevice) FEEDLINE_CHECK_OK(check("cuInit", started));
  FEEDLINE_CHECK_OK(check("cuDriverGetVersion", calls_.driver_version(&version_)));
  if (version_ < kEarliestDriver)
    return config_error("the driver supports CUDA " + of_version(version_) + ", but CUDA " +
                        of_version(kEarliestDriver) + " is needed; update it");
  if (started == kNoDevice) return {};
  return check("cuDeviceGetCount", calls_.device_count(&devices_));
}

Result<void> Driver::check(std::string_view call, int status) const {
  if (status == kSuccess) return {};
  const char* name = nullptr;
  const char* words = nullptr;
  calls_.error_name(status, &name);
  calls_.error_words(status, &words);
  std::string what = std::string(call) + ": " + (name != nullptr ? name : "error " + std::to_string(status));
  if (words != nullptr) what += std::string(" (") + words + ")";
  return storage_error(what + advice(status), status == kOutOfMemory ? ENOMEM : 0);
}

bool Driver::is_of_a_parent() const { return pid_ != getpid(); }

bool Driver::has_ended() const {
  int count = 0;
  return !is_of_a_parent() && calls_.device_count(&count) == kDeinitialized;
}

Result<void> Driver::check_process() const {
  if (!is_of_a_parent()) return {};
  return config_error(
      "device: CUDA was started before this process was forked, and does not work in a child: start processes with "
      "\"spawn\", or create loaders with a device only in the child");
}

}  // namespace feedline::device::cuda
