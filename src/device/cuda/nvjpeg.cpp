// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/nvjpeg.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace feedline::device::cuda {
namespace {

// CUDA versions for which nvJPEG is built, each in a separate package.
struct Built {
  int major;
  const char* package;
};
constexpr std::array kBuilt{Built{13, "nvidia-nvjpeg"}, Built{12, "nvidia-nvjpeg-cu12"},
                            Built{11, "nvidia-nvjpeg-cu11"}};
constexpr const char* kCpuInstead = "; or omit device= in decode to decode on the CPU";

std::string name_of(const Built& built) { return "libnvjpeg.so." + std::to_string(built.major); }

// Returns the latest build that this driver version supports.
const Built& fit_for(int cuda_version) {
  const auto found =
      std::ranges::find_if(kBuilt, [&](const Built& built) { return built.major <= cuda_version / 1000; });
  return found == kBuilt.end() ? kBuilt.back() : *found;
}

std::string words_of(int status) {
  switch (status) {
    case kJpegNoMemory:
      return "; lower batch_size, or release batches that you hold";
    case kJpegExecutionFailed:
      return "; the GPU or its driver has failed, or is too old for this nvJPEG: check nvidia-smi, and dmesg for "
             "\"Xid\"";
    default:
      return "; omit device= in decode to decode on the CPU";
  }
}

}  // namespace

std::vector<std::string> nvjpeg_files(int cuda_version) {
  std::vector<std::string> files;
  for (const Built& built : kBuilt)
    if (built.major <= cuda_version / 1000) files.push_back(name_of(built));
  return files;
}

Result<std::shared_ptr<const JpegLibrary>> JpegLibrary::open(const Driver& driver) {
  const char* const named = std::getenv("FEEDLINE_NVJPEG");
  const auto files =
      named != nullptr && *named != '\0' ? std::vector<std::string>{named} : nvjpeg_files(driver.version());
  for (const std::string& file : files)
    if (void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return load(library, file, driver);
  const Built& built = fit_for(driver.version());
  return config_error("decode(device=\"cuda\"): there is no " + (files.size() == 1 ? files.front() : name_of(built)) +
                      ": pip install " + built.package + kCpuInstead);
}

Result<std::shared_ptr<const JpegLibrary>> JpegLibrary::load(void* library, const std::string& file,
                                                             const Driver& driver) {
  std::shared_ptr<JpegLibrary> opened(new JpegLibrary);
  FEEDLINE_CHECK_OK(opened->look_up(library, file));
  FEEDLINE_CHECK_OK(opened->read_version());
  int major = 0;
  FEEDLINE_CHECK_OK(opened->check("nvjpegGetCudartProperty", opened->calls_.cuda_property(kMajorVersion, &major)));
  if (major > driver.version() / 1000)
    return config_error("decode(device=\"cuda\"): " + file + " is for CUDA " + std::to_string(major) +
                        ", but the driver supports CUDA " + std::to_string(driver.version() / 1000) +
                        ": update the driver, or pip install " + fit_for(driver.version()).package + kCpuInstead);
  return std::shared_ptr<const JpegLibrary>(std::move(opened));
}

Result<void> JpegLibrary::look_up(void* library, const std::string& file) {
  const char* missing = nullptr;
#define FEEDLINE_NVJPEG_FIND(member, name, arguments)                                \
  calls_.member = reinterpret_cast<decltype(calls_.member)>(::dlsym(library, name)); \
  if (calls_.member == nullptr) missing = name;
  FEEDLINE_NVJPEG_CALLS(FEEDLINE_NVJPEG_FIND)
#undef FEEDLINE_NVJPEG_FIND
  if (missing == nullptr) return {};
  return config_error("decode(device=\"cuda\"): " + file + " has no " + missing + ", which nvJPEG has had since CUDA " +
                      "11: install a later version (pip install " + kBuilt.front().package + ")" + kCpuInstead);
}

Result<void> JpegLibrary::read_version() {
  std::string version;
  for (const int part : {kMajorVersion, kMinorVersion, kPatchLevel}) {
    int number = 0;
    FEEDLINE_CHECK_OK(check("nvjpegGetProperty", calls_.property(part, &number)));
    version += (version.empty() ? "" : ".") + std::to_string(number);
  }
  version_ = std::move(version);
  return {};
}

Result<void> JpegLibrary::check(std::string_view call, int status) const {
  if (status == kJpegSuccess) return {};
  constexpr std::array<const char*, 11> kNames{"SUCCESS",
                                               "NOT_INITIALIZED",
                                               "INVALID_PARAMETER",
                                               "BAD_JPEG",
                                               "JPEG_NOT_SUPPORTED",
                                               "ALLOCATOR_FAILURE",
                                               "EXECUTION_FAILED",
                                               "ARCH_MISMATCH",
                                               "INTERNAL_ERROR",
                                               "IMPLEMENTATION_NOT_SUPPORTED",
                                               "INCOMPLETE_BITSTREAM"};
  const auto number = static_cast<std::size_t>(status);
  const std::string name =
      number < kNames.size() ? std::string("NVJPEG_STATUS_") + kNames[number] : "status " + std::to_string(status);
  return storage_error(std::string(call) + ": " + name + words_of(status), status == kJpegNoMemory ? ENOMEM : 0);
}

}  // namespace feedline::device::cuda
