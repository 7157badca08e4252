// SPDX-License-Identifier: Apache-2.0
#include "format/tar/gzip_cache.h"

#include <zlib.h>

#include <memory>
#include <utility>
#include <vector>

#include "cache/checksum.h"
#include "cache/places.h"
#include "cache/publication.h"

namespace feedline::format {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;

// What a copy's origin is; its numbers are size and modification time of the gzipped shard.
constexpr cache::FrameKind kOrigin{0x6e'69'67'72'6f'7a'67'66, 1};  // "fgzorign"

struct EndInflate {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};

Error damaged(const std::string& path, std::uint64_t offset, const std::string& how) {
  Error error = data_error("damaged gzip data: " + how + "; copy or download it again", "format").error();
  error.where.shard = path;
  error.where.offset = offset;
  return error;
}

// One inflate stream over all members of the file: `cat a.gz b.gz` is one file to gzip, and so here.
class Inflater {
 public:
  static constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, and gzip's wrapping with its check sum

  bool start() { return inflateInit2(&stream_, kGzipWindow) == Z_OK && (end_.reset(&stream_), true); }

  // All of `input` into `output`. Output that zlib still holds comes with the next input: a member's check sum follows
  // all of its data. Empty text: fine so far.
  Result<std::string> feed(std::span<std::byte> input, cache::OutputFile& output) {
    stream_.next_in = reinterpret_cast<Bytef*>(input.data());
    stream_.avail_in = static_cast<uInt>(input.size());
    while (stream_.avail_in > 0) {
      if (complete_ && *stream_.next_in == 0) {  // tapes and some downloads fill up with zeros
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
  bool complete_ = false;  // at the end of a member, its check sum compared
};

Result<void> decompress(const storage::Reader& reader, const std::string& path, cache::OutputFile& output) {
  Inflater inflater;
  if (!inflater.start()) return internal_error("zlib does not start");
  std::vector<std::byte> input(kChunkBytes);
  std::uint64_t offset = 0;
  while (true) {
    FEEDLINE_TRY(const std::size_t got, reader.read_at(offset, input));
    if (got == 0) break;
    FEEDLINE_TRY(const std::string wrong, inflater.feed(std::span(input).first(got), output));
    if (!wrong.empty()) return std::unexpected(damaged(path, offset, wrong));
    offset += got;
  }
  if (!inflater.complete()) return std::unexpected(damaged(path, offset, "it is cut before its end"));
  return {};
}

// What is in the way of a copy, and not of reading the shard.
Error without_a_place(Error error, const std::string& path) {
  if (error.code == ErrorCode::kStorage && error.where.shard != path)
    error.what = "no plain copy of '" + path + "', which reading a gzipped shard needs: " + error.what +
                 "; make room in the cache folder, or name another one in XDG_CACHE_HOME";
  return error;
}

}  // namespace

Result<bool> is_gzip(const storage::Reader& reader) {
  std::byte start[2];
  FEEDLINE_TRY(const std::size_t got, reader.read_at(0, start));
  return got == sizeof start && start[0] == std::byte{0x1f} && start[1] == std::byte{0x8b};
}

Result<std::string> decompressed(const storage::Storage& storage, const std::string& path, cache::Notes* notes,
                                 const cache::SystemWrites& writes) {
  FEEDLINE_TRY(const auto folder, cache::cache_folder());
  if (auto made = cache::make_folder(folder + "/plain"); !made)
    return std::unexpected(without_a_place(std::move(made).error(), path));
  FEEDLINE_TRY(const storage::Version gzip, storage.stat(path));
  cache::Publication copy;
  copy.path = folder + "/plain/" + cache::digest_of(storage.identity(path)) + ".tar";
  copy.kind = kOrigin;
  copy.origin = {gzip.bytes, gzip.stamp()};
  copy.notes = notes;
  copy.write = [&](cache::OutputFile& output) -> Result<void> {
    FEEDLINE_TRY(const auto reader, storage.open_version(path, storage::Access::kRead, gzip));
    return decompress(*reader, path, output);
  };
  copy.waits = [&](const std::string& holder) {
    if (notes != nullptr) notes->add("waited for " + holder + ", which made the plain copy of '" + path + "'");
  };
  auto published = cache::find_or_make(copy, writes);
  if (published) return copy.path;
  return std::unexpected(without_a_place(std::move(published).error(), path));
}

}  // namespace feedline::format
