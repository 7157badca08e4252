// SPDX-License-Identifier: Apache-2.0
#pragma once

// Declares the nvJPEG functions that Feedline uses, according to its manual. Feedline does not link to nvJPEG: it looks
// the names up in the installed library.

#include <cstddef>
#include <cstdint>

#include "device/cuda/driver_calls.h"

namespace feedline::device::cuda {

using JpegHandle = void*;   // nvjpegHandle_t: the library, on a GPU
using JpegEngine = void*;   // nvjpegJpegDecoder_t: a decoding method
using JpegState = void*;    // nvjpegJpegState_t: an image being decoded
using JpegBuffer = void*;   // nvjpegBufferPinned_t, nvjpegBufferDevice_t: a state's memory
using JpegStream = void*;   // nvjpegJpegStream_t: a parsed file
using JpegOptions = void*;  // nvjpegDecodeParams_t

// nvjpegStatus_t
inline constexpr int kJpegSuccess = 0;
inline constexpr int kJpegInvalidParameter = 2;
inline constexpr int kJpegBad = 3;
inline constexpr int kJpegNotSupported = 4;
inline constexpr int kJpegNoMemory = 5;
inline constexpr int kJpegExecutionFailed = 6;
inline constexpr int kJpegInternalError = 8;
inline constexpr int kJpegNotImplemented = 9;
inline constexpr int kJpegIncomplete = 10;

inline constexpr int kJpegHybrid = 1;          // NVJPEG_BACKEND_HYBRID: the CPU does the Huffman decoding
inline constexpr int kJpegRgbInterleaved = 5;  // NVJPEG_OUTPUT_RGBI
// NVJPEG_FLAGS_...; versions that do not know a flag reject it
inline constexpr unsigned kJpegStrict = 1u << 2;        // reject files that violate the format instead of guessing
inline constexpr unsigned kJpegInterpolated = 1u << 5;  // interpolated chroma, like libjpeg
inline constexpr int kMajorVersion = 0;                 // MAJOR_VERSION of libraryPropertyType
inline constexpr int kMinorVersion = 1;
inline constexpr int kPatchLevel = 2;

struct JpegImage {  // nvjpegImage_t; passed as void*
  std::uint8_t* channel[4];
  std::size_t pitch[4];
};

// Each entry has the member, the name in the library, and the arguments. All functions return a status.
#define FEEDLINE_NVJPEG_CALLS(X)                                                                                 \
  X(property, "nvjpegGetProperty", (int, int*))                                                                  \
  X(cuda_property, "nvjpegGetCudartProperty", (int, int*))                                                       \
  X(create, "nvjpegCreateEx", (int, void*, void*, unsigned, JpegHandle*))                                        \
  X(destroy, "nvjpegDestroy", (JpegHandle))                                                                      \
  X(engine_create, "nvjpegDecoderCreate", (JpegHandle, int, JpegEngine*))                                        \
  X(engine_destroy, "nvjpegDecoderDestroy", (JpegEngine))                                                        \
  X(state_create, "nvjpegDecoderStateCreate", (JpegHandle, JpegEngine, JpegState*))                              \
  X(state_destroy, "nvjpegJpegStateDestroy", (JpegState))                                                        \
  X(pinned_create, "nvjpegBufferPinnedCreate", (JpegHandle, void*, JpegBuffer*))                                 \
  X(pinned_destroy, "nvjpegBufferPinnedDestroy", (JpegBuffer))                                                   \
  X(pinned_attach, "nvjpegStateAttachPinnedBuffer", (JpegState, JpegBuffer))                                     \
  X(memory_create, "nvjpegBufferDeviceCreate", (JpegHandle, void*, JpegBuffer*))                                 \
  X(memory_destroy, "nvjpegBufferDeviceDestroy", (JpegBuffer))                                                   \
  X(memory_attach, "nvjpegStateAttachDeviceBuffer", (JpegState, JpegBuffer))                                     \
  X(stream_create, "nvjpegJpegStreamCreate", (JpegHandle, JpegStream*))                                          \
  X(stream_destroy, "nvjpegJpegStreamDestroy", (JpegStream))                                                     \
  X(parse, "nvjpegJpegStreamParse", (JpegHandle, const std::uint8_t*, std::size_t, int, int, JpegStream))        \
  X(dimensions, "nvjpegJpegStreamGetFrameDimensions", (JpegStream, unsigned*, unsigned*))                        \
  X(options_create, "nvjpegDecodeParamsCreate", (JpegHandle, JpegOptions*))                                      \
  X(options_destroy, "nvjpegDecodeParamsDestroy", (JpegOptions))                                                 \
  X(set_format, "nvjpegDecodeParamsSetOutputFormat", (JpegOptions, int))                                         \
  X(supported, "nvjpegDecoderJpegSupported", (JpegEngine, JpegStream, JpegOptions, int*))                        \
  X(on_host, "nvjpegDecodeJpegHost", (JpegHandle, JpegEngine, JpegState, JpegOptions, JpegStream))               \
  X(transfer, "nvjpegDecodeJpegTransferToDevice", (JpegHandle, JpegEngine, JpegState, JpegStream, StreamHandle)) \
  X(on_device, "nvjpegDecodeJpegDevice", (JpegHandle, JpegEngine, JpegState, void*, StreamHandle))

struct JpegCalls {
#define FEEDLINE_NVJPEG_MEMBER(member, name, arguments) int(*member) arguments = nullptr;
  FEEDLINE_NVJPEG_CALLS(FEEDLINE_NVJPEG_MEMBER)
#undef FEEDLINE_NVJPEG_MEMBER
};

}  // namespace feedline::device::cuda
