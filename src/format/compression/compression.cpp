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

// Room that grows as it is filled: never by what a header claims.
class Growing {
 public:
  Growing(memory::ByteBuffer& buffer, std::uint64_t first, std::uint64_t most) : buffer_(buffer), most_(most) {
    room_ = buffer_.resize(static_cast<std::size_t>(std::min(first, most)));
  }
  Out rest() const { return room_.subspan(used_); }
  Out used() const { return room_.first(used_); }
  void use(std::size_t bytes) { used_ += bytes; }
  // false: there are `most` bytes by now.
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

// Feeds a codec and follows it from one member to the next.
class Members {
 public:
  explicit Members(Compression kind) : kind_(kind), codec_(make_stream_codec(kind)) {}

  bool is_there() const { return codec_ != nullptr; }
  bool at_end() const { return at_end_; }
  // Takes from `in` as far as `out` has room. Gives what was made.
  Result<std::size_t> run(In& in, Out out) {
    std::size_t made = 0;
    stuck_ = false;
    while (made < out.size()) {
      if (at_end_) {
        while (kind_ == Compression::kGzip && !in.empty() && in.front() == std::byte{0})
          in = in.subspan(1);  // tapes and some downloads fill up with zeros
        if (in.empty()) break;
        if (!codec_->restart()) return damaged(kind_, "there are bytes behind its end");
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
  // Nothing is left inside that only more room would bring out.
  bool is_drained() const { return at_end_ || stuck_; }

 private:
  const Compression kind_;
  std::unique_ptr<StreamCodec> codec_;
  bool at_end_ = false, stuck_ = false;
};

std::unexpected<Error> no_memory(Compression kind) {
  return storage_error("no memory to decompress " + std::string(name_of(kind)) + " data", ENOMEM);
}

// What is left of `in` once `out` is full: an end and checksums, no byte more.
Result<void> end_exactly(Members& members, Compression kind, In in, std::uint64_t bytes) {
  std::byte one_more{};
  FEEDLINE_TRY(const std::size_t made, members.run(in, Out(&one_more, 1)));
  if (made > 0) return makes_more(kind, bytes);
  if (!members.at_end()) return damaged(kind, "it is cut before its end");
  return {};
}

Result<void> decompress_block_exactly(Compression kind, In in, Out out) {
  const auto made = decompress_block(kind, in, out);
  if (!made) return damaged(kind, "it is no such block, or one of more than " + std::to_string(out.size()) + " bytes");
  if (*made == out.size()) return {};
  return damaged(kind,
                 "it makes " + std::to_string(*made) + " bytes, where there should be " + std::to_string(out.size()));
}

Result<Out> decompress_whole_block(Compression kind, In in, memory::ByteBuffer& out, std::uint64_t most) {
  if (kind == Compression::kSnappy) {
    const auto bytes = size_in_block(kind, in);
    if (!bytes) return damaged(kind, "its size is none that such a block can have");
    if (*bytes > most) return makes_more(kind, most);
    FEEDLINE_TRY(const Out room, out.make_room(*bytes, most));
    FEEDLINE_CHECK_OK(decompress_block_exactly(kind, in, room));
    return room;
  }
  constexpr std::uint64_t kMostTimes = 255;  // what a byte of LZ4 can make
  const std::uint64_t bytes = std::min<std::uint64_t>(most, kMostTimes * in.size() + 64);
  FEEDLINE_TRY(const Out room, out.make_room(bytes, most));
  const auto made = decompress_block(kind, in, room);
  if (!made || *made > room.size())
    return damaged(kind, "it is no such block, or one of more than " + std::to_string(most) + " bytes");
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
  return damaged(kind, "it makes more than the " + std::to_string(most) + " bytes that there should be");
}

Result<void> decompress_exactly(Compression kind, In in, Out out) {
  if (!has_streams(kind)) return decompress_block_exactly(kind, in, out);
  Members members(kind);
  if (!members.is_there()) return no_memory(kind);
  FEEDLINE_TRY(const std::size_t made, members.run(in, out));
  if (made == out.size()) return end_exactly(members, kind, in, out.size());
  if (!members.at_end()) return damaged(kind, "it is cut before its end");
  return damaged(kind,
                 "it makes " + std::to_string(made) + " bytes, where there should be " + std::to_string(out.size()));
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
    if (!room.rest().empty()) return damaged(kind, "it is cut before its end");
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
  std::vector<std::byte> room;   // of streams
  std::vector<std::byte> block;  // of blocks: all that came
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
    const std::uint64_t most = state.most + state.most / 6 + 32;  // what either kind makes at worst of so many bytes
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
    if (!in.empty()) return damaged(state.kind, "it does not go on");
    return {};
  }
}

Result<void> StreamDecompression::finish(const Take& take) {
  State& state = *state_;
  if (has_streams(state.kind)) {
    if (state.members.at_end()) return {};
    return damaged(state.kind, "it is cut before its end");
  }
  memory::ByteBuffer room;
  FEEDLINE_TRY(const Out whole, decompress(state.kind, state.block, room, state.most));
  state.made = whole.size();
  return take(whole);
}

}  // namespace feedline::format
