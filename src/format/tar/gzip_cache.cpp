// SPDX-License-Identifier: Apache-2.0
#include "format/tar/gzip_cache.h"

#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "format/checksum.h"
#include "storage/file_lock.h"
#include "storage/local_folders.h"
#include "storage/output_file.h"

namespace feedline::format {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;

// Written beside the plain copy once that is whole; says what it was made from.
struct Origin {
  std::uint64_t magic = 0x31'7a'67'64'65'65'66'0a;  // changes with this layout
  std::uint64_t gzip_bytes = 0;
  std::int64_t gzip_mtime_ns = 0;
  std::uint64_t plain_bytes = 0;
  friend bool operator==(const Origin&, const Origin&) = default;
};

bool is_current(const std::string& plain, const storage::ObjectStat& gzip) {
  const auto local = storage::local_storage();
  memory::ByteBuffer buffer;
  const auto bytes = local->read_all(plain + ".origin", buffer, sizeof(Origin));
  const auto stat = local->stat(plain);
  Origin origin;
  if (!bytes || !stat || bytes->size() != sizeof origin) return false;
  std::memcpy(&origin, bytes->data(), sizeof origin);
  return origin == Origin{.gzip_bytes = gzip.bytes, .gzip_mtime_ns = gzip.mtime_ns, .plain_bytes = stat->bytes};
}

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
  Result<std::string> feed(std::span<std::byte> input, storage::OutputFile& output, std::uint64_t& written) {
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
      written += ready.size();
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

// What killed processes left unfinished beside `plain`. Requires: the lock, so that nobody is writing there.
void remove_leftovers(const std::string& plain) {
  const std::filesystem::path path(plain);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(path.filename().string()) && name.ends_with(".unfinished"))
      std::filesystem::remove(entry.path(), ignored);
  }
}

Result<std::uint64_t> decompress(const storage::Reader& reader, const std::string& path, storage::OutputFile& output) {
  Inflater inflater;
  if (!inflater.start()) return internal_error("zlib does not start");
  std::vector<std::byte> input(kChunkBytes);
  std::uint64_t offset = 0, written = 0;
  while (true) {
    FEEDLINE_TRY(const std::size_t got, reader.read_at(offset, input));
    if (got == 0) break;
    FEEDLINE_TRY(const std::string wrong, inflater.feed(std::span(input).first(got), output, written));
    if (!wrong.empty()) return std::unexpected(damaged(path, offset, wrong));
    offset += got;
  }
  if (!inflater.complete()) return std::unexpected(damaged(path, offset, "it is cut before its end"));
  return written;
}

}  // namespace

Result<bool> is_gzip(const storage::Reader& reader) {
  std::byte start[2];
  FEEDLINE_TRY(const std::size_t got, reader.read_at(0, start));
  return got == sizeof start && start[0] == std::byte{0x1f} && start[1] == std::byte{0x8b};
}

Result<std::string> decompressed(const storage::Storage& storage, const std::string& path) {
  FEEDLINE_TRY(const auto cache, storage::cache_folder());
  FEEDLINE_CHECK_OK(storage::make_folder(cache + "/plain"));
  const std::string plain = cache + "/plain/" + path_digest(path) + ".tar";
  const auto lock = storage::FileLock::take(plain + ".lock");
  FEEDLINE_TRY(const auto gzip, storage.stat(path));
  if (is_current(plain, gzip)) return plain;
  if (lock.held()) remove_leftovers(plain);
  FEEDLINE_TRY(const auto reader, storage.open(path, storage::Access::kRead));
  FEEDLINE_TRY(auto output, storage::OutputFile::create(plain));
  FEEDLINE_TRY(const std::uint64_t bytes, decompress(*reader, path, output));
  // first nothing vouches for the copy, then the copy changes, then its origin vouches for it: a crash in between
  // leaves work to do again, never a copy that passes for another
  FEEDLINE_CHECK_OK(storage::write_file(plain + ".origin", {}, storage::Flush::kYes));
  FEEDLINE_CHECK_OK(output.commit(storage::Flush::kYes));
  const Origin origin{.gzip_bytes = gzip.bytes, .gzip_mtime_ns = gzip.mtime_ns, .plain_bytes = bytes};
  FEEDLINE_CHECK_OK(storage::write_file(plain + ".origin", std::as_bytes(std::span(&origin, 1)), storage::Flush::kYes));
  return plain;
}

}  // namespace feedline::format
