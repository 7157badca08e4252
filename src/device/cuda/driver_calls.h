// SPDX-License-Identifier: Apache-2.0
#pragma once

// Declares the CUDA driver functions that Feedline uses, according to CUDA's manual. Feedline does not link to CUDA: it
// looks up each function by name in the installed library, in the latest version that CUDA 11 has.

#include <cstddef>
#include <cstdint>

namespace feedline::device::cuda {

using DeviceNumber = int;
using ContextHandle = void*;
using StreamHandle = void*;
using EventHandle = void*;
using ModuleHandle = void*;
using FunctionHandle = void*;
using DeviceAddress = std::uint64_t;

inline constexpr int kSuccess = 0;
inline constexpr int kInvalidValue = 1;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kNotInitialized = 3;
inline constexpr int kDeinitialized = 4;
inline constexpr int kStubLibrary = 34;
inline constexpr int kDeviceUnavailable = 46;
inline constexpr int kNoDevice = 100;
inline constexpr int kInvalidDevice = 101;
inline constexpr int kUncorrectableEcc = 214;
inline constexpr int kNotReady = 600;
inline constexpr int kIllegalAddress = 700;
inline constexpr int kLaunchFailed = 719;
inline constexpr int kSystemNotReady = 802;
inline constexpr int kSystemDriverMismatch = 803;
inline constexpr int kDriverTooEarlyForDevice = 804;
inline constexpr int kCaptureUnsupported = 900;
inline constexpr int kCaptureImplicit = 906;
inline constexpr int kUnknown = 999;

inline constexpr int kComputeCapabilityMajor = 75;  // CU_DEVICE_ATTRIBUTE_...
inline constexpr int kComputeCapabilityMinor = 76;
inline constexpr int kMostUrgent = -100;                // stream priority; the driver clamps it to its range
inline constexpr unsigned kPortable = 0x1;              // CU_MEMHOSTALLOC_PORTABLE: for every context
inline constexpr unsigned kPortableRegistration = 0x1;  // CU_MEMHOSTREGISTER_PORTABLE: the same for others' memory
inline constexpr unsigned kNonBlocking = 0x1;           // CU_STREAM_NON_BLOCKING: not ordered with the default stream
inline constexpr unsigned kDisableTiming = 0x2;         // CU_EVENT_DISABLE_TIMING
inline constexpr int kRelaxedCapture = 2;               // CU_STREAM_CAPTURE_MODE_RELAXED
inline constexpr int kEarliestDriver = 11'000;          // as returned by cuDriverGetVersion: 1000 * major + 10 * minor

// Each entry has the member, the name in the library, and the arguments. All functions return a status.
#define FEEDLINE_CUDA_CALLS(X)                                                                                   \
  X(init, "cuInit", (unsigned))                                                                                  \
  X(driver_version, "cuDriverGetVersion", (int*))                                                                \
  X(error_name, "cuGetErrorName", (int, const char**))                                                           \
  X(error_words, "cuGetErrorString", (int, const char**))                                                        \
  X(device_count, "cuDeviceGetCount", (int*))                                                                    \
  X(device, "cuDeviceGet", (DeviceNumber*, int))                                                                 \
  X(device_name, "cuDeviceGetName", (char*, int, DeviceNumber))                                                  \
  X(pci_bus_id, "cuDeviceGetPCIBusId", (char*, int, DeviceNumber))                                               \
  X(device_attribute, "cuDeviceGetAttribute", (int*, int, DeviceNumber))                                         \
  X(primary_retain, "cuDevicePrimaryCtxRetain", (ContextHandle*, DeviceNumber))                                  \
  X(primary_state, "cuDevicePrimaryCtxGetState", (DeviceNumber, unsigned*, int*))                                \
  X(primary_release, "cuDevicePrimaryCtxRelease_v2", (DeviceNumber))                                             \
  X(push, "cuCtxPushCurrent_v2", (ContextHandle))                                                                \
  X(pop, "cuCtxPopCurrent_v2", (ContextHandle*))                                                                 \
  X(capture_mode, "cuThreadExchangeStreamCaptureMode", (int*))                                                   \
  X(host_alloc, "cuMemHostAlloc", (void**, std::size_t, unsigned))                                               \
  X(host_free, "cuMemFreeHost", (void*))                                                                         \
  X(host_register, "cuMemHostRegister_v2", (void*, std::size_t, unsigned))                                       \
  X(host_unregister, "cuMemHostUnregister", (void*))                                                             \
  X(alloc, "cuMemAlloc_v2", (DeviceAddress*, std::size_t))                                                       \
  X(free, "cuMemFree_v2", (DeviceAddress))                                                                       \
  X(memory_info, "cuMemGetInfo_v2", (std::size_t*, std::size_t*))                                                \
  X(copy_to_device, "cuMemcpyHtoDAsync_v2", (DeviceAddress, const void*, std::size_t, StreamHandle))             \
  X(stream_create, "cuStreamCreateWithPriority", (StreamHandle*, unsigned, int))                                 \
  X(stream_destroy, "cuStreamDestroy_v2", (StreamHandle))                                                        \
  X(stream_finish, "cuStreamSynchronize", (StreamHandle))                                                        \
  X(stream_wait, "cuStreamWaitEvent", (StreamHandle, EventHandle, unsigned))                                     \
  X(stream_capturing, "cuStreamIsCapturing", (StreamHandle, int*))                                               \
  X(event_create, "cuEventCreate", (EventHandle*, unsigned))                                                     \
  X(event_destroy, "cuEventDestroy_v2", (EventHandle))                                                           \
  X(event_record, "cuEventRecord", (EventHandle, StreamHandle))                                                  \
  X(event_query, "cuEventQuery", (EventHandle))                                                                  \
  X(event_wait, "cuEventSynchronize", (EventHandle))                                                             \
  X(module_load, "cuModuleLoadData", (ModuleHandle*, const void*))                                               \
  X(module_unload, "cuModuleUnload", (ModuleHandle))                                                             \
  X(module_function, "cuModuleGetFunction", (FunctionHandle*, ModuleHandle, const char*))                        \
  X(launch, "cuLaunchKernel",                                                                                    \
    (FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, StreamHandle, void**, \
     void**))

// Functions that only newer drivers have: nullptr if the installed driver does not.
#define FEEDLINE_CUDA_LATER_CALLS(X) X(context_record, "cuCtxRecordEvent", (ContextHandle, EventHandle))

struct DriverCalls {
#define FEEDLINE_CUDA_MEMBER(member, name, arguments) int(*member) arguments = nullptr;
  FEEDLINE_CUDA_CALLS(FEEDLINE_CUDA_MEMBER)
  FEEDLINE_CUDA_LATER_CALLS(FEEDLINE_CUDA_MEMBER)
#undef FEEDLINE_CUDA_MEMBER
};

}  // namespace feedline::device::cuda
