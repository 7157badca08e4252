// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/image_checkpoints.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "base/thread.h"
#include "cache/persisted_tables.h"
#include "decode/decoder.h"
#include "format/format.h"
#include "memory/pixels.h"
#include "memory/record.h"
#include "pipeline/sample/part_reads.h"
#include "pipeline/sample/source.h"

namespace feedline::pipeline {
namespace {

// Increment the version number whenever the encoding of checkpoints changes (decode/jpeg/checkpoints.cpp).
constexpr cache::FrameKind kCheckpoints{0x74'70'6b'63'64'65'65'66, 2};  // "feedckpt"
constexpr std::string_view kSuffix = ".feedline-checkpoints";
// Likewise for outlines (decode/jpeg/jpeg_part.cpp).
constexpr cache::FrameKind kOutlines{0x65'6e'69'6c'74'75'6f'66, 1};  // "foutline"
constexpr std::string_view kOutlineSuffix = ".feedline-outlines";

std::uint64_t at(const std::array<std::atomic<std::uint64_t>, decode::kCheckpointEvents>& events,
                 decode::CheckpointEvent event) {
  return events[static_cast<std::size_t>(event)].load(std::memory_order_relaxed);
}

std::string kib_of(std::uint64_t bytes) { return std::to_string((bytes + 1023) / 1024) + " KiB"; }

// Decodes the last pixel of each image, which requires reading the whole image.
class Maker {
 public:
  Maker(std::shared_ptr<const format::RecordFormat> records, ImageCheckpoints& checkpoints)
      : records_(std::move(records)), checkpoints_(checkpoints) {
    decoder_.use_checkpoints(&checkpoints);
    record_.most_bytes = memory::usual_sample_limit();
  }

  void make(std::uint64_t sample) {
    if (make_remote(sample) || !records_->read(sample, record_)) return;
    for (std::size_t i = 0; i < record_.fields.size(); ++i) {
      const memory::Record::Field& field = record_.fields[i];
      if (is_image(i) && !field.absent && !field.bytes.empty()) make_of(field.bytes);
    }
    record_.pin.reset();
  }

 private:
  bool is_image(std::size_t field) const { return records_->fields()[field].kind == format::FieldKind::kImage; }

  void make_of(std::span<const std::byte> image) {
    const auto header = decoder_.open(image);
    if (!header || decoder_.kind() != "jpeg") return;
    (void)decoder_.decode({header->width - 1, header->height - 1, 1, 1}, ColorMode::kRgb, pixels_);
  }

  // Reads each image with its version, for its outline. Returns false if the sample must be read as usual.
  bool make_remote(std::uint64_t sample) {
    const auto storage = records_->storage();
    if (!has_ranges(storage.get())) return false;
    for (std::size_t i = 0; i < records_->fields().size(); ++i) {
      if (!is_image(i)) continue;
      const auto image = records_->locate_image(sample, i);
      if (!image || !*image) return false;
      const auto& [reader, path, offset, size, expected, is_shared] = **image;
      const auto version = reader ? reader->version() : expected ? *expected : storage->stat(path);
      if (!version) return false;
      storage::Read read{.piece = **image, .most_bytes = record_.most_bytes, .version = *version};
      storage::read_now(*storage, read);
      if (!read.bytes) return false;
      make_of(*read.bytes);
      note_outline(*storage, **image, *read.bytes, *version, checkpoints_);
    }
    return true;
  }

  std::shared_ptr<const format::RecordFormat> records_;
  ImageCheckpoints& checkpoints_;
  decode::ImageDecoder decoder_;
  memory::Record record_;
  memory::PixelBuffer pixels_;
};

}  // namespace

std::shared_ptr<ImageCheckpoints> ImageCheckpoints::of_source(const storage::Storage& storage,
                                                              const std::string& source, const std::string& directory) {
  const auto store_of = [&](cache::FrameKind kind, std::string_view suffix) {
    return std::make_shared<cache::EntryStore>(kind,
                                               cache::locations_of_source(kind, suffix, storage, source, directory));
  };
  return std::shared_ptr<ImageCheckpoints>(
      new ImageCheckpoints({store_of(kCheckpoints, kSuffix)}, {store_of(kOutlines, kOutlineSuffix)}));
}

std::shared_ptr<ImageCheckpoints> ImageCheckpoints::in_memory() {
  const auto store_of = [](cache::FrameKind kind) {
    return std::make_shared<cache::EntryStore>(kind, std::vector<std::string>());
  };
  return std::shared_ptr<ImageCheckpoints>(new ImageCheckpoints({store_of(kCheckpoints)}, {store_of(kOutlines)}));
}

std::shared_ptr<ImageCheckpoints> ImageCheckpoints::joined(
    const std::vector<std::shared_ptr<ImageCheckpoints>>& parts) {
  Stores stores, outlines;
  bool are_ranges_allowed = true;
  for (const auto& part : parts) {
    if (!part) continue;
    are_ranges_allowed = are_ranges_allowed && part->are_ranges_allowed_;
    stores.insert(stores.end(), part->stores_.begin(), part->stores_.end());
    outlines.insert(outlines.end(), part->outlines_.begin(), part->outlines_.end());
  }
  if (stores.empty()) return nullptr;
  std::shared_ptr<ImageCheckpoints> all(new ImageCheckpoints(std::move(stores), std::move(outlines)));
  all->allow_ranges(are_ranges_allowed);
  return all;
}

bool ImageCheckpoints::find(std::uint64_t key, std::vector<std::byte>& entry) const {
  return std::ranges::any_of(stores_, [&](const auto& store) { return store->find(key, entry); });
}

void ImageCheckpoints::save(std::uint64_t key, std::span<const std::byte> entry) { stores_.front()->save(key, entry); }

void ImageCheckpoints::note(decode::CheckpointEvent event) {
  events_[static_cast<std::size_t>(event)].fetch_add(1, std::memory_order_relaxed);
}

bool ImageCheckpoints::find_outline(std::uint64_t key, std::vector<std::byte>& outline) const {
  return std::ranges::any_of(outlines_, [&](const auto& store) { return store->find(key, outline); });
}

void ImageCheckpoints::save_outline(std::uint64_t key, std::span<const std::byte> outline) {
  outlines_.front()->save(key, outline);
}

// An entry that is not an outline replaces it.
void ImageCheckpoints::forget_outline(std::uint64_t key) {
  constexpr std::byte kNone{};
  for (const auto& store : outlines_)
    if (std::vector<std::byte> outline; store->find(key, outline)) store->save(key, std::span(&kNone, 1));
}

void ImageCheckpoints::note_range(std::uint64_t bytes, std::uint64_t image_bytes) {
  ranges_.fetch_add(1, std::memory_order_relaxed);
  range_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  range_image_bytes_.fetch_add(image_bytes, std::memory_order_relaxed);
}

Result<void> ImageCheckpoints::write(bool always) const {
  Result<void> result;
  for (const auto& store : outlines_) (void)store->write(always);  // without them, whole images are read
  for (const auto& store : stores_)
    if (auto written = store->write(always); !written) result = std::move(written);
  return result;
}

CheckpointStats ImageCheckpoints::stats() const {
  CheckpointStats stats{.used = at(events_, decode::CheckpointEvent::kUsed),
                        .made = at(events_, decode::CheckpointEvent::kMade),
                        .changed = at(events_, decode::CheckpointEvent::kChanged),
                        .damaged = at(events_, decode::CheckpointEvent::kDamaged),
                        .ranges = ranges_.load(std::memory_order_relaxed),
                        .range_bytes = range_bytes_.load(std::memory_order_relaxed),
                        .range_image_bytes = range_image_bytes_.load(std::memory_order_relaxed),
                        .refused_ranges = refused_ranges_.load(std::memory_order_relaxed)};
  for (const auto& store : stores_) {
    const cache::EntryStore::Counts counts = store->counts();
    stats.images += counts.entries;
    stats.bytes += counts.bytes;
    stats.dropped += counts.dropped;
    stats.damaged += counts.is_damaged;
    if (stats.path.empty()) stats.path = counts.path;
    if (stats.failure.empty()) stats.failure = counts.failure;
  }
  return stats;
}

std::string ImageCheckpoints::explain() const {
  const CheckpointStats now = stats();
  if (now.images == 0) return {};
  std::string text = "checkpoints of " + std::to_string(now.images) + (now.images == 1 ? " JPEG" : " JPEGs") + ", " +
                     kib_of(now.bytes) + " ";
  text += now.path.empty() ? "in memory" : "in " + now.path;
  if (now.used > 0) text += "; " + std::to_string(now.used) + " decodes so far used them";
  if (now.ranges > 0)
    text += "; " + std::to_string(now.ranges) + " crops fetched " + kib_of(now.range_bytes / now.ranges) + " of " +
            kib_of(now.range_image_bytes / now.ranges) + " on average";
  if (now.changed > 0) text += "; " + std::to_string(now.changed) + " images had changed";
  if (!now.failure.empty()) text += "; they could not be stored: " + now.failure;
  return text;
}

Result<CheckpointStats> make_checkpoints(const Source& source, int threads) {
  const auto records = format::records_of(source.format());
  const auto& checkpoints = source.checkpoints();
  const auto is_image = [](const format::FieldDescription& field) { return field.kind == format::FieldKind::kImage; };
  if (!records || std::ranges::none_of(records->fields(), is_image))
    return config_error("checkpoints: the samples of \"" + source.name() + "\" have no encoded images");
  if (!checkpoints)
    return config_error("checkpoints: the dataset was opened with checkpoints=False; open it without this argument");
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::optional<Error> failure;
  const auto make_all = [&] {
    Maker maker(records, *checkpoints);
    for (std::uint64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < records->size();) maker.make(i);
  };
  const auto fail = [&](Error error) {
    const std::lock_guard lock(mutex);
    failure = std::move(error);
  };
  {
    std::vector<base::Thread> pool;
    for (int i = 0; i < threads; ++i) {
      FEEDLINE_TRY(auto thread, base::Thread::start("feedline-index", make_all, fail));
      pool.push_back(std::move(thread));
    }
  }  // joins
  if (failure) return std::unexpected(*failure);
  FEEDLINE_CHECK_OK(checkpoints->write(true));
  return checkpoints->stats();
}

}  // namespace feedline::pipeline
