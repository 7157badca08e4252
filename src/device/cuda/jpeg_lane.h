// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes one JPEG after another with nvJPEG. The calling thread does the Huffman decoding, which detects invalid
// files; the GPU does the inverse DCT and the colour conversion asynchronously.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "device/cuda/context.h"
#include "device/cuda/nvjpeg.h"
#include "feedline/operation.h"

namespace feedline::device::cuda {

// An nvJPEG instance for a GPU, shared by all lanes. Thread-safe.
class JpegSession {
 public:
  static Result<std::shared_ptr<const JpegSession>> make(std::shared_ptr<const Context> context,
                                                         std::shared_ptr<const JpegLibrary> library);
  ~JpegSession();
  JpegSession(const JpegSession&) = delete;
  JpegSession& operator=(const JpegSession&) = delete;

  const Context& context() const { return *context_; }
  const std::shared_ptr<const Context>& shared_context() const { return context_; }
  const JpegLibrary& library() const { return *library_; }
  const JpegCalls& calls() const { return library_->calls(); }
  JpegHandle handle() const { return handle_; }
  JpegEngine engine() const { return engine_; }
  // Calls a function with the GPU's context current; errors contain the function's name.
  template <typename... Parameters, typename... Arguments>
  Result<void> call(const char* name, int (*function)(Parameters...), Arguments... arguments) const {
    return context_->in([&]() -> Result<void> { return library_->check(name, function(arguments...)); });
  }

 private:
  JpegSession(std::shared_ptr<const Context> context, std::shared_ptr<const JpegLibrary> library)
      : context_(std::move(context)), library_(std::move(library)) {}
  Result<void> start();

  const std::shared_ptr<const Context> context_;
  const std::shared_ptr<const JpegLibrary> library_;
  JpegHandle handle_ = nullptr;
  JpegEngine engine_ = nullptr;
};

// Used by one thread at a time. The destructor waits for the last image that this object started to decode; this
// decoding does not depend on other kernels.
class JpegLane {
 public:
  static Result<std::unique_ptr<JpegLane>> make(std::shared_ptr<const JpegSession> session);
  ~JpegLane();
  JpegLane(const JpegLane&) = delete;
  JpegLane& operator=(const JpegLane&) = delete;

  StreamHandle stream() const { return stream_; }
  // Performs the host's part of decoding. Returns false if nvJPEG cannot decode the file to that size.
  Result<bool> read(std::span<const std::byte> file, Size size);
  // Queues the remaining work on the lane's stream; it writes contiguous RGB rows to `to`. An error means that the GPU
  // has failed and that nothing is in flight. Requires: the last call was read(), which returned true for that size.
  Result<std::shared_ptr<const Event>> write(DeviceAddress to, Size size);

 private:
  explicit JpegLane(std::shared_ptr<const JpegSession> session) : session_(std::move(session)) {}
  Result<void> start();
  Result<bool> read_here(std::span<const std::byte> file, Size size);
  Result<void> give(DeviceAddress to, Size size, Event& end);

  // A parsed file and its transfer memory. There are two objects, so that one file can be read while the other is
  // transferred.
  struct Read {
    JpegStream file = nullptr;
    JpegBuffer pinned = nullptr;
  };

  const std::shared_ptr<const JpegSession> session_;
  StreamHandle stream_ = nullptr;
  JpegOptions options_ = nullptr;
  JpegState state_ = nullptr;
  JpegBuffer memory_ = nullptr;
  std::array<Read, 2> reads_;
  std::size_t at_ = 0;
  std::shared_ptr<const Event> last_;  // of the last image; nullptr if there was none
};

}  // namespace feedline::device::cuda
