// SPDX-License-Identifier: Apache-2.0
// Files "*.pairs": "PAIRS1\n", the number of samples (uint64), then for each sample its offset, the bytes of its image
// and its label (3 x uint64), then the images. Numbers are little-endian.
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "parts.h"

namespace {

struct Entry {
  std::uint64_t offset, bytes, label;
};
using Shard = std::vector<Entry>;

constexpr char kMagic[] = "PAIRS1\n";
constexpr std::uint64_t kHead = 7 + 8;

void read_exactly(const feedline_file* file, std::uint64_t offset, void* out, std::size_t bytes) {
  feedline_message why{};
  std::size_t got = 0;
  if (file->read(file->host, offset, out, bytes, &got, &why) != FEEDLINE_OK) throw std::runtime_error(why.text);
  if (got != bytes) throw std::runtime_error("the file is truncated: it ends at byte " + std::to_string(offset + got));
}

int open_file(void*, const feedline_file* file, void** shard, uint64_t* samples, feedline_message* message) {
  return feedline::plugin_guard(message, [&] {
    char head[kHead];
    read_exactly(file, 0, head, sizeof head);
    if (std::memcmp(head, kMagic, 7) != 0)
      return feedline::plugin_failure(message, FEEDLINE_BAD_DATA, "the file does not begin with PAIRS1");
    std::memcpy(samples, head + 7, 8);
    if (*samples > (file->bytes - kHead) / sizeof(Entry))
      return feedline::plugin_failure(message, FEEDLINE_BAD_DATA, "the file is too small for its number of samples");
    Shard entries(*samples);
    read_exactly(file, kHead, entries.data(), entries.size() * sizeof(Entry));
    *shard = new Shard(std::move(entries));
    return int{FEEDLINE_OK};
  });
}

void close_file(void*, void* shard) { delete static_cast<Shard*>(shard); }

int locate(void*, void* shard, uint64_t sample, uint64_t* offset, uint64_t* bytes, feedline_message*) {
  const Entry& entry = (*static_cast<const Shard*>(shard))[sample];
  *offset = entry.offset;
  *bytes = entry.bytes;
  return FEEDLINE_OK;
}

int read_sample(void*, void* shard, uint64_t sample, feedline_bytes stored, const feedline_memory*,
                feedline_bytes* values, feedline_message*) {
  values[0] = stored;
  values[1] = {&(*static_cast<const Shard*>(shard))[sample].label, 8};
  return FEEDLINE_OK;
}

const feedline_field kFields[] = {{"image", "image"}, {"label", "value"}};
const char* const kExtensions[] = {"pairs"};

}  // namespace

const feedline_format_v1 kFormat{sizeof(feedline_format_v1),
                                 "pairs",
                                 "1.0",
                                 nullptr,
                                 kExtensions,
                                 1,
                                 kFields,
                                 2,
                                 open_file,
                                 close_file,
                                 locate,
                                 read_sample};
