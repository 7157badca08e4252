// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/jpeg_lane.h"

#include <tuple>

namespace feedline::device::cuda {
namespace {

// Returns whether the status reports an error in the file, not in the GPU.
bool is_of_the_file(int status) {
  return status == kJpegBad || status == kJpegNotSupported || status == kJpegNotImplemented ||
         status == kJpegIncomplete || status == kJpegInternalError;
}

}  // namespace

// ---- the library on a GPU ----

Result<std::shared_ptr<const JpegSession>> JpegSession::make(std::shared_ptr<const Context> context,
                                                             std::shared_ptr<const JpegLibrary> library) {
  std::shared_ptr<JpegSession> session(new JpegSession(std::move(context), std::move(library)));
  FEEDLINE_CHECK_OK(session->start());
  return std::shared_ptr<const JpegSession>(std::move(session));
}

Result<void> JpegSession::start() {
  const auto create = [this](unsigned flags) {
    return context_->in(
        [&]() -> Result<int> { return calls().create(kJpegHybrid, nullptr, nullptr, flags, &handle_); });
  };
  int status = kJpegInvalidParameter;
  for (const unsigned flags : {kJpegStrict | kJpegInterpolated, kJpegStrict, 0u}) {
    if (status != kJpegInvalidParameter) break;
    FEEDLINE_TRY(status, create(flags));
  }
  FEEDLINE_CHECK_OK(library_->check("nvjpegCreateEx", status));
  return call("nvjpegDecoderCreate", calls().engine_create, handle_, kJpegHybrid, &engine_);
}

JpegSession::~JpegSession() {
  if (context_->driver().is_of_a_parent()) return;
  if (engine_ != nullptr) std::ignore = call("nvjpegDecoderDestroy", calls().engine_destroy, engine_);
  if (handle_ != nullptr) std::ignore = call("nvjpegDestroy", calls().destroy, handle_);
}

// ---- a lane ----

Result<std::unique_ptr<JpegLane>> JpegLane::make(std::shared_ptr<const JpegSession> session) {
  std::unique_ptr<JpegLane> lane(new JpegLane(std::move(session)));
  FEEDLINE_CHECK_OK(lane->start());
  return lane;
}

Result<void> JpegLane::start() {
  const JpegSession& session = *session_;
  const JpegCalls& calls = session.calls();
  const JpegHandle handle = session.handle();
  void* const usual = nullptr;  // nvJPEG's default allocator, which is CUDA's
  FEEDLINE_CHECK_OK(session.context().call("cuStreamCreateWithPriority", session.context().calls().stream_create,
                                           &stream_, kNonBlocking, kMostUrgent));
  FEEDLINE_CHECK_OK(session.call("nvjpegDecodeParamsCreate", calls.options_create, handle, &options_));
  FEEDLINE_CHECK_OK(session.call("nvjpegDecodeParamsSetOutputFormat", calls.set_format, options_, kJpegRgbInterleaved));
  FEEDLINE_CHECK_OK(session.call("nvjpegDecoderStateCreate", calls.state_create, handle, session.engine(), &state_));
  FEEDLINE_CHECK_OK(session.call("nvjpegBufferDeviceCreate", calls.memory_create, handle, usual, &memory_));
  FEEDLINE_CHECK_OK(session.call("nvjpegStateAttachDeviceBuffer", calls.memory_attach, state_, memory_));
  for (Read& read : reads_) {
    FEEDLINE_CHECK_OK(session.call("nvjpegJpegStreamCreate", calls.stream_create, handle, &read.file));
    FEEDLINE_CHECK_OK(session.call("nvjpegBufferPinnedCreate", calls.pinned_create, handle, usual, &read.pinned));
  }
  return {};
}

JpegLane::~JpegLane() {
  const JpegSession& session = *session_;
  if (session.context().driver().is_of_a_parent()) return;
  if (last_) std::ignore = last_->wait();
  const auto destroy = [&session](const char* name, int (*function)(void*), void* one) {
    if (one != nullptr) std::ignore = session.call(name, function, one);
  };
  const JpegCalls& calls = session.calls();
  for (const Read& read : reads_) {
    destroy("nvjpegBufferPinnedDestroy", calls.pinned_destroy, read.pinned);
    destroy("nvjpegJpegStreamDestroy", calls.stream_destroy, read.file);
  }
  destroy("nvjpegBufferDeviceDestroy", calls.memory_destroy, memory_);
  destroy("nvjpegJpegStateDestroy", calls.state_destroy, state_);
  destroy("nvjpegDecodeParamsDestroy", calls.options_destroy, options_);
  if (stream_ != nullptr)
    std::ignore = session.context().call("cuStreamDestroy", session.context().calls().stream_destroy, stream_);
}

Result<bool> JpegLane::read(std::span<const std::byte> file, Size size) {
  return session_->context().in([&] { return read_here(file, size); });
}

Result<bool> JpegLane::read_here(std::span<const std::byte> file, Size size) {
  const JpegSession& session = *session_;
  const JpegCalls& calls = session.calls();
  const Read& read = reads_[at_];
  const auto of_file = [&](const char* name, int status) -> Result<bool> {
    if (is_of_the_file(status)) return false;
    FEEDLINE_CHECK_OK(session.library().check(name, status));
    return true;
  };
  FEEDLINE_TRY(
      const bool is_jpeg,
      of_file("nvjpegJpegStreamParse", calls.parse(session.handle(), reinterpret_cast<const std::uint8_t*>(file.data()),
                                                   file.size(), 0, 0, read.file)));
  if (!is_jpeg) return false;
  unsigned width = 0, height = 0;
  FEEDLINE_CHECK_OK(
      session.library().check("nvjpegJpegStreamGetFrameDimensions", calls.dimensions(read.file, &width, &height)));
  if (width != static_cast<unsigned>(size.width) || height != static_cast<unsigned>(size.height)) return false;
  int refused = 0;  // according to the manual: 0 means yes
  FEEDLINE_CHECK_OK(session.library().check("nvjpegDecoderJpegSupported",
                                            calls.supported(session.engine(), read.file, options_, &refused)));
  if (refused != 0) return false;
  FEEDLINE_CHECK_OK(session.library().check("nvjpegStateAttachPinnedBuffer", calls.pinned_attach(state_, read.pinned)));
  return of_file("nvjpegDecodeJpegHost",
                 calls.on_host(session.handle(), session.engine(), state_, options_, read.file));
}

Result<void> JpegLane::give(DeviceAddress to, Size size, Event& end) {
  const JpegSession& session = *session_;
  const JpegCalls& calls = session.calls();
  const JpegStream file = reads_[at_].file;
  FEEDLINE_CHECK_OK(session.call("nvjpegDecodeJpegTransferToDevice", calls.transfer, session.handle(), session.engine(),
                                 state_, file, stream_));
  JpegImage image{};
  image.channel[0] = reinterpret_cast<std::uint8_t*>(to);
  image.pitch[0] = static_cast<std::size_t>(size.width) * 3;
  FEEDLINE_CHECK_OK(session.call("nvjpegDecodeJpegDevice", calls.on_device, session.handle(), session.engine(), state_,
                                 static_cast<void*>(&image), stream_));
  return end.record(stream_);
}

Result<std::shared_ptr<const Event>> JpegLane::write(DeviceAddress to, Size size) {
  // the state and its GPU memory are still used by the previous image
  if (last_) FEEDLINE_CHECK_OK(last_->wait());
  FEEDLINE_TRY(std::shared_ptr<Event> end, Event::make(session_->shared_context()));
  if (auto given = give(to, size, *end); !given) {
    std::ignore = session_->context().call("cuStreamSynchronize", session_->context().calls().stream_finish, stream_);
    last_ = nullptr;
    return std::unexpected(std::move(given).error());
  }
  at_ = 1 - at_;
  last_ = end;
  return end;
}

}  // namespace feedline::device::cuda
