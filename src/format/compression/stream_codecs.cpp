// SPDX-License-Identifier: Apache-2.0
#include <brotli/decode.h>
#include <bzlib.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "format/compression/codec.h"

namespace feedline::format {
namespace {

using In = std::span<const std::byte>;
using Out = std::span<std::byte>;

// zlib and bzip2 use 32-bit sizes.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30U;
unsigned at_once(std::size_t bytes) { return static_cast<unsigned>(std::min(bytes, kMostAtOnce)); }

class Zstd final : public StreamCodec {
 public:
  bool start() { return stream_ != nullptr; }
  Step step(In in, Out out) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t left = ZSTD_decompressStream(stream_.get(), &to, &from);
    Step step{from.pos, to.pos};
    if (ZSTD_isError(left) != 0) step.wrong = ZSTD_getErrorName(left);
    // for empty input it reports the start of a frame, not the end of one
    step.at_end = left == 0 && (from.pos > 0 || to.pos > 0);
    return step;
  }
  bool restart() override { return true; }  // zstd restarts by itself

 private:
  struct Free {
    void operator()(ZSTD_DCtx* stream) const { ZSTD_freeDCtx(stream); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> stream_{ZSTD_createDCtx()};
};

class Inflate final : public StreamCodec {
 public:
  explicit Inflate(Compression kind) : kind_(kind) {}
  ~Inflate() override {
    if (started_) inflateEnd(&stream_);
  }
  Inflate(const Inflate&) = delete;
  Inflate& operator=(const Inflate&) = delete;

  bool start() {
    constexpr int kWindow = 15, kEitherWrapping = 32;
    const int bits = kind_ == Compression::kDeflate ? -kWindow
                     : kind_ == Compression::kZlib  ? kWindow
                                                    : kWindow + kEitherWrapping;
    return started_ = inflateInit2(&stream_, bits) == Z_OK;
  }
  Step step(In in, Out out) override {
    const unsigned given = at_once(in.size()), room = at_once(out.size());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = given;
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = room;
    const int state = inflate(&stream_, Z_NO_FLUSH);
    Step step{given - stream_.avail_in, room - stream_.avail_out, state == Z_STREAM_END};
    if (state == Z_NEED_DICT)
      step.wrong = "the data needs a dictionary";
    else if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
      step.wrong = stream_.msg != nullptr ? stream_.msg : "zlib error " + std::to_string(state);
    return step;
  }
  bool restart() override { return kind_ == Compression::kGzip && inflateReset(&stream_) == Z_OK; }

 private:
  const Compression kind_;
  z_stream stream_{};
  bool started_ = false;
};

class Brotli final : public StreamCodec {
 public:
  bool start() { return state_ != nullptr; }
  Step step(In in, Out out) override {
    std::size_t in_left = in.size(), out_left = out.size();
    const auto* next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    auto* next_out = reinterpret_cast<std::uint8_t*>(out.data());
    const auto result = BrotliDecoderDecompressStream(state_.get(), &in_left, &next_in, &out_left, &next_out, nullptr);
    Step step{in.size() - in_left, out.size() - out_left, result == BROTLI_DECODER_RESULT_SUCCESS};
    if (result == BROTLI_DECODER_RESULT_ERROR)
      step.wrong = BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state_.get()));
    return step;
  }
  bool restart() override { return false; }

 private:
  struct Free {
    void operator()(BrotliDecoderState* state) const { BrotliDecoderDestroyInstance(state); }
  };
  std::unique_ptr<BrotliDecoderState, Free> state_{BrotliDecoderCreateInstance(nullptr, nullptr, nullptr)};
};

class Bzip2 final : public StreamCodec {
 public:
  ~Bzip2() override { end(); }
  Bzip2() = default;
  Bzip2(const Bzip2&) = delete;
  Bzip2& operator=(const Bzip2&) = delete;

  bool start() {
    stream_ = {};
    return started_ = BZ2_bzDecompressInit(&stream_, 0, 0) == BZ_OK;
  }
  Step step(In in, Out out) override {
    const unsigned given = at_once(in.size()), room = at_once(out.size());
    stream_.next_in = reinterpret_cast<char*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = given;
    stream_.next_out = reinterpret_cast<char*>(out.data());
    stream_.avail_out = room;
    const int state = BZ2_bzDecompress(&stream_);
    Step step{given - stream_.avail_in, room - stream_.avail_out, state == BZ_STREAM_END};
    if (state == BZ_DATA_ERROR_MAGIC)
      step.wrong = "the header is invalid";
    else if (state == BZ_MEM_ERROR)
      step.wrong = "there is not enough memory";
    else if (state != BZ_OK && state != BZ_STREAM_END)
      step.wrong = "a checksum or a code is invalid";
    return step;
  }
  bool restart() override {
    end();
    return start();
  }

 private:
  void end() {
    if (std::exchange(started_, false)) BZ2_bzDecompressEnd(&stream_);
  }
  bz_stream stream_{};
  bool started_ = false;
};

template <typename Codec>
std::unique_ptr<StreamCodec> started(std::unique_ptr<Codec> codec) {
  if (!codec->start()) return nullptr;
  return codec;
}

}  // namespace

bool has_streams(Compression kind) { return kind != Compression::kSnappy && kind != Compression::kLz4; }

std::unique_ptr<StreamCodec> make_stream_codec(Compression kind) {
  switch (kind) {
    case Compression::kZstd:
      return started(std::make_unique<Zstd>());
    case Compression::kGzip:
    case Compression::kZlib:
    case Compression::kDeflate:
      return started(std::make_unique<Inflate>(kind));
    case Compression::kBrotli:
      return started(std::make_unique<Brotli>());
    case Compression::kBzip2:
      return started(std::make_unique<Bzip2>());
    case Compression::kSnappy:
    case Compression::kLz4:
      break;
  }
  return nullptr;
}

}  // namespace feedline::format
