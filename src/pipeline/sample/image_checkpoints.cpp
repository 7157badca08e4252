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
#include "pipeline/sample/source.h"

namespace feedline::pipeline {
namespace {

// Increment the version number whenever the encoding of checkpoints changes (decode/jpeg/checkpoints.cpp).
constexpr cache::FrameKind kCheckpoints{0x74'70'6b'63'64'65'65'66, 1};  // "feedckpt"
constexpr std::string_view kSuffix = ".feedline-checkpoints";

std::uint64_t at(const std::array<std::atomic<std::uint64_t>, decode::kCheckpointEvents>& events,
                 decode::CheckpointEvent event) {
  return events[static_cast<std::size_t>(event)].load(std::memory_order_relaxed);
}

// Decodes the last pixel of each image, which requires reading the whole image.
class Maker {
 public:
  Maker(std::shared_ptr<const format::RecordFormat> records, ImageCheckpoints& checkpoints)
      : records_(std::move(records)) {
    decoder_.use_checkpoints(&checkpoints);
  }

  void make(std::uint64_t sample) {
    if (!records_->read(sample, record_)) return;
    for (std::size_t i = 0; i < record_.fields.size(); ++i) {
      const memory::Record::Field& field = record_.fields[i];
      if (records_->fields()[i].kind != format::FieldKind::kImage || field.absent || field.bytes.empty()) continue;
      const auto header = decoder_.open(field.bytes);
      if (!header || decoder_.kind() != "jpeg") continue;
      (void)decoder_.decode({header->width - 1, header->height - 1, 1, 1}, ColorMode::kRgb, pixels_);
    }
    record_.pin.reset();
  }

 private:
  std::shared_ptr<const format::RecordFormat> records_;
  decode::ImageDecoder decoder_;
  memory::Record record_;
  memory::PixelBuffer pixels_;
};

}  // namespace

std::shared_ptr<ImageCheckpoints> ImageCheckpoints::of_source(const storage::Storage& storage,
                                                              const std::string& source, const std::string& directory) {
  auto store = std::make_shared<cache::EntryStore>(
      kCheckpoints, cache::locations_of_source(kCheckpoints, kSuffix, storage, source, directory));
  return std::shared_ptr<ImageCheckpoints>(new ImageCheckpoints({std::move(store)}));
}

std::shared_ptr<ImageCheckpoints> ImageCheckpoints::in_memory() {
  auto store = std::make_shared<cache::EntryStore>(kCheckpoints, std::vector<std::string>());
  return std::shared_ptr<ImageCheckpoints>(new ImageCheckpoints({std::move(store)}));
}

std::shared_ptr<ImageCheckpoints> ImageCheckpoints::joined(
    const std::vector<std::shared_ptr<ImageCheckpoints>>& parts) {
  std::vector<std::shared_ptr<cache::EntryStore>> stores;
  for (const auto& part : parts)
    if (part) stores.insert(stores.end(), part->stores_.begin(), part->stores_.end());
  if (stores.empty()) return nullptr;
  return std::shared_ptr<ImageCheckpoints>(new ImageCheckpoints(std::move(stores)));
}

bool ImageCheckpoints::find(std::uint64_t key, std::vector<std::byte>& entry) const {
  return std::ranges::any_of(stores_, [&](const auto& store) { return store->find(key, entry); });
}

void ImageCheckpoints::save(std::uint64_t key, std::span<const std::byte> entry) { stores_.front()->save(key, entry); }

void ImageCheckpoints::note(decode::CheckpointEvent event) {
  events_[static_cast<std::size_t>(event)].fetch_add(1, std::memory_order_relaxed);
}

Result<void> ImageCheckpoints::write(bool always) const {
  Result<void> result;
  for (const auto& store : stores_)
    if (auto written = store->write(always); !written) result = std::move(written);
  return result;
}

CheckpointStats ImageCheckpoints::stats() const {
  CheckpointStats stats{.used = at(events_, decode::CheckpointEvent::kUsed),
                        .made = at(events_, decode::CheckpointEvent::kMade),
                        .changed = at(events_, decode::CheckpointEvent::kChanged),
                        .damaged = at(events_, decode::CheckpointEvent::kDamaged)};
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
                     std::to_string((now.bytes + 1023) / 1024) + " KiB ";
  text += now.path.empty() ? "in memory" : "in " + now.path;
  if (now.used > 0) text += "; " + std::to_string(now.used) + " decodes so far used them";
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
