// SPDX-License-Identifier: Apache-2.0
#include "format/compression/compression.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "format/compression/codec.h"

namespace feedline::format {
namespace {

using In = std::span<const std::byte>;
using Out = std::span<std::byte>;

// A buffer that grows only as it is filled, since sizes in headers are not trusted.
class Growing {
 public:
  Growing(memory::ByteBuffer& buffer, std::uint64_t first, std::uint64_t most) : buffer_(buffer), most_(most) {
    room_ = buffer_.resize(static_cast<std::size_t>(std::min(first, most)));
  }
  Out rest() const { return room_.subspan(used_); }
  Out used() const { return room_.first(used_); }
  void use(std::size_t bytes) { used_ += bytes; }
  // Returns false if the buffer already has `most` bytes.
  Result<bool> grow() {
    if (room_.size() == most_) return false;
    memory::ByteBuffer larger;
    FEEDLINE_TRY(const Out room, larger.make_room(std::min<std::uint64_t>(most_, room_.size() * 2 + 1), most_));
    if (used_ > 0) std::memcpy(room.data(), room_.data(), used_);
    buffer_ = std::move(larger);
    room_ = room;
    return true;
  }

 private:
  memory::ByteBuffer& buffer_;
  const std::uint64_t most_;
  Out room_;
  std::size_t used_ = 0;
};

// Runs a codec over consecutive members.
class Members {
 public:
  explicit Members(Compression kind) : kind_(kind), codec_(make_stream_codec(kind)) {}

  bool is_there() const { return codec_ != nullptr; }
  bool at_end() const { return at_end_; }
  // Decompresses `in` until `out` is full or `in` is consumed. Returns the number of bytes written.
  Result<std::size_t> run(In& in, Out out) {
    std::size_t made = 0;
    stuck_ = false;
    while (made < out.size()) {
      if (at_end_) {
        while (kind_ == Compression::kGzip && !in.empty() && in.front() == std::byte{0})
          in = in.subspan(1);  // tapes and some downloads are padded with zeros
        if (in.empty()) break;
        if (!codec_->restart()) return damaged(kind_, "extra bytes follow the end of the data");
        at_end_ = false;
      }
      const StreamCodec::Step step = codec_->step(in, out.subspan(made));
      if (!step.wrong.empty()) return damaged(kind_, step.wrong);
      in = in.subspan(step.taken);
      made += step.made;
      at_end_ = step.at_end;
      if (!at_end_ && step.taken == 0 && step.made == 0) {
        stuck_ = true;
        break;
      }
    }
    return made;
  }
  // Returns whether the codec has written all output for the input so far.
  bool is_drained() const { return at_end_ || stuck_; }

 private:
  const Compression kind_;
  std::unique_ptr<StreamCodec> codec_;
  bool at_end_ = false, stuck_ = false;
};

std::unexpected<Error> no_memory(Compression kind) {
  return storage_error("not enough memory to decompress " + std::string(name_of(kind)) + " data", ENOMEM);
}

// Checks that only an end marker and checksums follow the expected data in the input.
Result<void> end_exactly(Members& members, Compression kind, In in, std::uint64_t bytes) {
  std::byte one_more{};
  FEEDLINE_TRY(const std::size_t made, members.run(in, Out(&one_more, 1)));
  if (made > 0) return makes_more(kind, bytes);
  if (!members.at_end()) return damaged(kind, "the data is truncated");
  return {};
}

Result<void> decompress_block_exactly(Compression kind, In in, Out out) {
  const auto made = decompress_block(kind, in, out);
  if (!made) return damaged(kind, "the data is not a valid block of at most " + std::to_string(out.size()) + " bytes");
  if (*made == out.size()) return {};
  return damaged(
      kind, "the data decompresses to " + std::to_string(*made) + " bytes instead of " + std::to_string(out.size()));
}

Result<Out> decompress_whole_block(Compression kind, In in, memory::ByteBuffer& out, std::uint64_t most) {
  if (kind == Compression::kSnappy) {
    const auto bytes = size_in_block(kind, in);
    if (!bytes) return damaged(kind, "the size is impossible for such a block");
    if (*bytes > most) return makes_more(kind, most);
    FEEDLINE_TRY(const Out room, out.make_room(*bytes, most));
    FEEDLINE_CHECK_OK(decompress_block_exactly(kind, in, room));
    return room;
  }
  constexpr std::uint64_t kMostTimes = 255;  // the maximum expansion of LZ4
  const std::uint64_t bytes = std::min<std::uint64_t>(most, kMostTimes * in.size() + 64);
  FEEDLINE_TRY(const Out room, out.make_room(bytes, most));
  const auto made = decompress_block(kind, in, room);
  if (!made || *made > room.size())
    return damaged(kind, "the data is not a valid block of at most " + std::to_string(most) + " bytes");
  return room.first(*made);
}

}  // namespace

std::string_view name_of(Compression kind) {
  switch (kind) {
    case Compression::kZstd:
      return "zstd";
    case Compression::kGzip:
      return "gzip";
    case Compression::kZlib:
      return "zlib";
    case Compression::kDeflate:
      return "deflate";
    case Compression::kBrotli:
      return "brotli";
    case Compression::kBzip2:
      return "bzip2";
    case Compression::kSnappy:
      return "snappy";
    case Compression::kLz4:
      return "LZ4";
  }
  return "";
}

std::unexpected<Error> damaged(Compression kind, const std::string& how) {
  return data_error("damaged " + std::string(name_of(kind)) + " data: " + how + "; copy or download it again",
                    "format");
}

std::unexpected<Error> makes_more(Compression kind, std::uint64_t most) {
  return damaged(kind, "the data decompresses to more than the " + std::to_string(most) + " bytes expected");
}

Result<void> decompress_exactly(Compression kind, In in, Out out) {
  if (!has_streams(kind)) return decompress_block_exactly(kind, in, out);
  Members members(kind);
  if (!members.is_there()) return no_memory(kind);
  FEEDLINE_TRY(const std::size_t made, members.run(in, out));
  if (made == out.size()) return end_exactly(members, kind, in, out.size());
  if (!members.at_end()) return damaged(kind, "the data is truncated");
  return damaged(
      kind, "the data decompresses to " + std::to_string(made) + " bytes instead of " + std::to_string(out.size()));
}

Result<Out> decompress(Compression kind, In in, memory::ByteBuffer& out, std::uint64_t most) {
  if (!has_streams(kind)) return decompress_whole_block(kind, in, out, most);
  Members members(kind);
  if (!members.is_there()) return no_memory(kind);
  constexpr std::uint64_t kUsualTimes = 4;
  Growing room(out, in.size() * kUsualTimes + 64, most);
  while (true) {
    FEEDLINE_TRY(const std::size_t made, members.run(in, room.rest()));
    room.use(made);
    if (members.at_end() && in.empty()) return room.used();
    if (!room.rest().empty()) return damaged(kind, "the data is truncated");
    FEEDLINE_TRY(const bool grown, room.grow());
    if (grown) continue;
    FEEDLINE_CHECK_OK(end_exactly(members, kind, in, most));
    return room.used();
  }
}

struct StreamDecompression::State {
  State(Compression of, std::uint64_t bytes) : kind(of), most(bytes), members(of) {}

  const Compression kind;
  const std::uint64_t most;
  std::uint64_t made = 0;
  Members members;
  std::vector<std::byte> room;   // output buffer for streams
  std::vector<std::byte> block;  // all input so far, for blocks
};

StreamDecompression::StreamDecompression(std::unique_ptr<State> state) : state_(std::move(state)) {}
StreamDecompression::StreamDecompression(StreamDecompression&&) noexcept = default;
StreamDecompression::~StreamDecompression() = default;

std::uint64_t StreamDecompression::made() const { return state_->made; }

Result<StreamDecompression> StreamDecompression::start(Compression kind, std::uint64_t most) {
  constexpr std::size_t kRoomBytes = std::size_t{1} << 20U;
  auto state = std::make_unique<State>(kind, most);
  if (has_streams(kind)) {
    if (!state->members.is_there()) return no_memory(kind);
    state->room.resize(kRoomBytes);
  }
  return StreamDecompression(std::move(state));
}

Result<void> StreamDecompression::feed(In in, const Take& take) {
  State& state = *state_;
  if (!has_streams(state.kind)) {
    const std::uint64_t most = state.most + state.most / 6 + 32;  // the worst-case compressed size of either kind
    if (in.size() > most - state.block.size()) return makes_more(state.kind, state.most);
    state.block.insert(state.block.end(), in.begin(), in.end());
    return {};
  }
  while (true) {
    FEEDLINE_TRY(const std::size_t made, state.members.run(in, state.room));
    if (made > state.most - state.made) return makes_more(state.kind, state.most);
    state.made += made;
    if (made > 0) FEEDLINE_CHECK_OK(take(In(state.room).first(made)));
    if (!state.members.is_drained()) continue;
    if (!in.empty()) return damaged(state.kind, "the codec makes no progress");
    return {};
  }
}

Result<void> StreamDecompression::finish(const Take& take) {
  State& state = *state_;
  if (has_streams(state.kind)) {
    if (state.members.at_end()) return {};
    return damaged(state.kind, "the data is truncated");
  }
  memory::ByteBuffer room;
  FEEDLINE_TRY(const Out whole, decompress(state.kind, state.block, room, state.most));
  state.made = whole.size();
  return take(whole);
}

}  // namespace feedline::format
