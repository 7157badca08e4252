// SPDX-License-Identifier: Apache-2.0
#pragma once

// One JPEG after the other, by nvJPEG: the thread that has a file decodes what Huffman has coded and learns whether the
// file is sound; the inverse DCT and the colours follow on the GPU, while the thread goes on.

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

// nvJPEG on a GPU, for all lanes. Thread-safe.
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
  // One call, by its name, with the GPU's context as the thread's.
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

// Of one thread at a time. Its end waits for the last image that it began, which waits for nobody's kernels.
class JpegLane {
 public:
  static Result<std::unique_ptr<JpegLane>> make(std::shared_ptr<const JpegSession> session);
  ~JpegLane();
  JpegLane(const JpegLane&) = delete;
  JpegLane& operator=(const JpegLane&) = delete;

  StreamHandle stream() const { return stream_; }
  // What is done on the host. false: nvJPEG does not decode the file, or not to that size.
  Result<bool> read(std::span<const std::byte> file, Size size);
  // Gives the rest to the GPU, on the lane's stream: rows of RGB at `to` without gaps. An error: the GPU has failed,
  // and nothing of this is on its way. Requires: read() was true for that size, and nothing came between.
  Result<std::shared_ptr<const Event>> write(DeviceAddress to, Size size);

 private:
  explicit JpegLane(std::shared_ptr<const JpegSession> session) : session_(std::move(session)) {}
  Result<void> start();
  Result<bool> read_here(std::span<const std::byte> file, Size size);
  Result<void> give(DeviceAddress to, Size size, Event& end);

  // A file that was read, and memory for what is to cross of it. Two of them: one is read while the other crosses.
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
  std::shared_ptr<const Event> last_;  // of the last image; nullptr: there was none
};

}  // namespace feedline::device::cuda
