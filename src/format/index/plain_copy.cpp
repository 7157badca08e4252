// SPDX-License-Identifier: Apache-2.0
#include "format/index/plain_copy.h"

#include <zlib.h>

#include <memory>
#include <utility>
#include <vector>

#include "cache/checksum.h"
#include "cache/copy_folder.h"
#include "cache/places.h"
#include "cache/publication.h"

namespace feedline::format {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;

// Identifies the source of a copy by the size and modification time of the compressed shard.
constexpr cache::FrameKind kOrigin{0x6e'69'67'72'6f'7a'67'66, 1};  // "fgzorign"

struct EndInflate {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};

Error damaged(const std::string& path, std::string_view kind, std::uint64_t offset, const std::string& how) {
  Error error =
      data_error("damaged " + std::string(kind) + " data: " + how + "; copy or download it again", "format").error();
  error.where.shard = path;
  error.where.offset = offset;
  return error;
}

// Decompresses all members of a file as one stream, like gzip, so that the output of `cat a.gz b.gz` can be read as one
// file.
class Inflater {
 public:
  // for zlib: the largest window, and the data's own wrapper, gzip or zlib, with its checksum
  static constexpr int kAnyWindow = 15 + 32;

  bool start() { return inflateInit2(&stream_, kAnyWindow) == Z_OK && (end_.reset(&stream_), true); }

  // Decompresses all of `input` into `output`. Output that zlib still buffers is written by the next call; there always
  // is a next call, because a checksum follows the data of each member. Returns an error message, or an empty string if
  // there was no error.
  Result<std::string> feed(std::span<std::byte> input, cache::OutputFile& output) {
    stream_.next_in = reinterpret_cast<Bytef*>(input.data());
    stream_.avail_in = static_cast<uInt>(input.size());
    while (stream_.avail_in > 0) {
      if (complete_ && *stream_.next_in == 0) {  // tapes and some downloads are padded with zeros
        ++stream_.next_in, --stream_.avail_in;
        continue;
      }
      if (std::exchange(complete_, false) && inflateReset(&stream_) != Z_OK) return std::string("zlib failed");
      if (const std::string wrong = inflate_some(); !wrong.empty()) return wrong;
      const std::span<const std::byte> ready(out_.data(), out_.size() - stream_.avail_out);
      FEEDLINE_CHECK_OK(output.append(ready));
    }
    return std::string();
  }
  bool complete() const { return complete_; }

 private:
  std::string inflate_some() {
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
    stream_.avail_out = static_cast<uInt>(out_.size());
    const int state = inflate(&stream_, Z_NO_FLUSH);
    complete_ = state == Z_STREAM_END;
    if (state == Z_OK || state == Z_STREAM_END) return {};
    return stream_.msg ? stream_.msg : "zlib error " + std::to_string(state);
  }

  z_stream stream_{};
  std::unique_ptr<z_stream, EndInflate> end_;
  std::vector<std::byte> out_ = std::vector<std::byte>(4 * kChunkBytes);
  bool complete_ = false;  // at the end of a member whose checksum was verified
};

Result<void> decompress(const storage::Reader& reader, const std::string& path, cache::OutputFile& output) {
  Inflater inflater;
  if (!inflater.start()) return internal_error("cannot initialise zlib");
  std::vector<std::byte> input(kChunkBytes);
  std::uint64_t offset = 0;
  FEEDLINE_TRY(const bool gzip, is_gzip(reader));
  const std::string_view kind = gzip ? "gzip" : "zlib";
  while (true) {
    FEEDLINE_TRY(const std::size_t got, reader.read_at(offset, input));
    if (got == 0) break;
    FEEDLINE_TRY(const std::string wrong, inflater.feed(std::span(input).first(got), output));
    if (!wrong.empty()) return std::unexpected(damaged(path, kind, offset, wrong));
    offset += got;
  }
  if (!inflater.complete()) return std::unexpected(damaged(path, kind, offset, "the file is truncated"));
  return {};
}

// Explains an error that occurred while writing the copy, not while reading the shard.
Error without_a_place(Error error, const std::string& path) {
  if (error.code == ErrorCode::kStorage && error.where.shard != path)
    error.what = "cannot write the decompressed copy of '" + path +
                 "', which is needed to read the compressed shard: " + error.what +
                 "; make room in the cache folder, or set XDG_CACHE_HOME to another one";
  return error;
}

}  // namespace

Result<bool> is_gzip(const storage::Reader& reader) {
  std::byte start[2];
  FEEDLINE_TRY(const std::size_t got, reader.read_at(0, start));
  return got == sizeof start && start[0] == std::byte{0x1f} && start[1] == std::byte{0x8b};
}

Result<bool> is_zlib(const storage::Reader& reader) {
  constexpr unsigned kDeflate = 8, kDictionary = 0x20, kMostWindow = 7;
  std::byte start[2];
  FEEDLINE_TRY(const std::size_t got, reader.read_at(0, start));
  if (got < sizeof start) return false;
  const auto method = std::to_integer<unsigned>(start[0]), flags = std::to_integer<unsigned>(start[1]);
  return (method & 15U) == kDeflate && method >> 4U <= kMostWindow && (flags & kDictionary) == 0 &&
         (method * 256 + flags) % 31 == 0;  // RFC 1950, 2.2
}

Result<std::string> decompressed(const storage::Storage& storage, const std::string& path, std::string_view extension,
                                 cache::Notes* notes, const cache::SystemWrites& writes) {
  const auto make = [&path](const storage::Reader& reader, cache::OutputFile& output) {
    return decompress(reader, path, output);
  };
  return made_plain(storage, path, extension, make, notes, writes);
}

Result<std::string> made_plain(const storage::Storage& storage, const std::string& path, std::string_view extension,
                               const MakePlain& make, cache::Notes* notes, const cache::SystemWrites& writes) {
  FEEDLINE_TRY(const auto folder, cache::cache_folder());
  if (auto made = cache::make_folder(folder + "/plain"); !made)
    return std::unexpected(without_a_place(std::move(made).error(), path));
  FEEDLINE_TRY(const storage::Version compressed, storage.stat(path));
  cache::Publication copy;
  copy.path = folder + "/plain/" + cache::digest_of(storage.identity(path)) + std::string(extension);
  copy.kind = kOrigin;
  copy.origin = {compressed.bytes, compressed.stamp()};
  copy.notes = notes;
  copy.write = [&](cache::OutputFile& output) -> Result<void> {
    FEEDLINE_TRY(const auto reader, storage.open_version(path, storage::Access::kRead, compressed));
    return make(*reader, output);
  };
  copy.waits = [&](const std::string& holder) {
    if (notes != nullptr) notes->add("waited for " + holder + " to create the decompressed copy of '" + path + "'");
  };
  copy.reserve = [&](std::uint64_t bytes) { return cache::make_room(folder + "/plain", bytes); };
  cache::add_use(copy.path);
  auto published = cache::find_or_make(copy, writes);
  if (published) {
    cache::note_last_use(copy.path);
    return copy.path;
  }
  return std::unexpected(without_a_place(std::move(published).error(), path));
}

}  // namespace feedline::format
