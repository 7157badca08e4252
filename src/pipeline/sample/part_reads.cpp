// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/part_reads.h"

#include <string>
#include <utility>
#include <vector>

#include "cache/checksum.h"
#include "decode/decoder.h"
#include "decode/jpeg/jpeg_part.h"
#include "format/format.h"
#include "pipeline/fields/pixels_path.h"
#include "pipeline/sample/image_checkpoints.h"
#include "pipeline/sample/recipe.h"
#include "storage/version.h"
#include "transform/chain.h"

namespace feedline::pipeline {
namespace {

storage::Version version_of(const decode::JpegOutline& outline) {
  return {outline.bytes, static_cast<std::int64_t>(outline.version[0]), outline.version[1]};
}

std::uint64_t key_of(const storage::Storage& storage, const storage::Piece& image) {
  const std::string name = storage.identity(image.name());
  return cache::xxh3(std::as_bytes(std::span(name)), image.offset);
}

}  // namespace

bool has_ranges(const storage::Storage* storage) {
  return storage != nullptr && storage->joins_reads() && storage->holds_versions();
}

void note_outline(const storage::Storage& storage, const storage::Piece& image, std::span<const std::byte> bytes,
                  const storage::Version& version, ImageCheckpoints& checkpoints) {
  const std::uint64_t key = key_of(storage, image);
  thread_local std::vector<std::byte> entry;
  if (checkpoints.find_outline(key, entry))
    if (const auto known = decode::read_outline(entry);
        known && known->bytes == bytes.size() && version_of(*known).stamp() == version.stamp())
      return;
  auto outline = decode::outline_of(bytes);
  if (!outline) return;
  outline->version = {static_cast<std::uint64_t>(version.mtime_ns), version.tag};
  checkpoints.save_outline(key, decode::to_bytes(*outline));
}

struct PartReads::Finder::Scratch {
  decode::ImageDecoder decoder;
  transform::Drawing drawing;
  std::vector<std::byte> entry;
  std::string room;
};

std::unique_ptr<PartReads> PartReads::make(std::shared_ptr<const Recipe> recipe) {
  if (!recipe->records || !recipe->checkpoints || !recipe->checkpoints->are_ranges_allowed() || !recipe->image ||
      recipe->images != 1 || recipe->cache || recipe->boxes || recipe->decoder)
    return nullptr;
  for (const std::size_t field : recipe->others)
    if (recipe->format->fields()[field].kind != format::FieldKind::kInteger) return nullptr;
  if (!has_ranges(recipe->records->storage().get())) return nullptr;
  return std::unique_ptr<PartReads>(new PartReads(std::move(recipe)));
}

PartReads::PartReads(std::shared_ptr<const Recipe> recipe)
    : recipe_(std::move(recipe)), storage_(recipe_->records->storage()) {}
PartReads::~PartReads() = default;

PartReads::Finder::Finder(const PartReads& reads) : reads_(reads), scratch_(std::make_unique<Scratch>()) {}
PartReads::Finder::~Finder() = default;

std::shared_ptr<PartRead> PartReads::Finder::find(std::uint64_t sample, const base::SampleKey& key) {
  const Recipe& recipe = *reads_.recipe_;
  const format::RecordFormat& records = *recipe.records;
  memory::Record::Field value;
  for (const std::size_t field : recipe.others)
    if (!records.find_value(sample, field, value, scratch_->room)) return nullptr;
  const auto image = records.locate_image(sample, recipe.image_field);
  if (!image || !*image) return nullptr;
  const storage::Piece& whole = **image;
  if (!recipe.checkpoints->find_outline(key_of(*reads_.storage_, whole), scratch_->entry)) return nullptr;
  const auto outline = decode::read_outline(scratch_->entry);
  if (!outline) return nullptr;
  storage::Version version = version_of(*outline);
  auto reader = whole.reader;
  if (reader) {
    const auto opened = reader->version();
    if (!opened || outline->bytes != whole.bytes) return nullptr;
    version.bytes = opened->bytes;
    if (*opened != version) return nullptr;
  } else {
    if (whole.version && *whole.version != version) return nullptr;
    auto opened = reads_.storage_->open_version(whole.path, storage::Access::kRead, version);
    if (!opened) return nullptr;
    reader = std::move(*opened);
  }
  const transform::Chain& chain = recipe.image->chain();
  const auto header = scratch_->decoder.open(outline->head, chain.applies_exif());
  if (!header || !chain.draw({header->height, header->width}, key, scratch_->drawing)) return nullptr;
  auto part =
      scratch_->decoder.find_part(scratch_->drawing.region, *outline, storage::is_strong(version), *recipe.checkpoints);
  if (!part) return nullptr;
  auto read = std::make_shared<PartRead>();
  read->piece = {std::move(reader), {}, whole.offset + part->begin, part->end - part->begin};
  read->image_bytes = outline->bytes;
  read->held_bytes = part->held_bytes();
  read->part = std::move(part);
  return read;
}

bool PartReads::fill(const PartRead& read, std::uint64_t sample, std::span<const std::byte> bytes,
                     memory::Record& record) const {
  record.pin.reset();
  record.fields.assign(recipe_->records->fields().size(), {});
  for (const std::size_t field : recipe_->others)
    if (!recipe_->records->find_value(sample, field, record.fields[field], record.name)) return false;
  if (!read.part->fill(bytes)) return false;
  memory::Record::Field& image = record.fields[recipe_->image_field];
  image.part = read.part;
  image.bytes = read.part->file;
  record.bytes_read = bytes.size();
  return true;
}

bool PartReads::accept(const PartRead& read, std::uint64_t sample, const Result<std::span<const std::byte>>& bytes,
                       memory::Record& record) const {
  if (bytes && fill(read, sample, *bytes, record)) {
    recipe_->checkpoints->note_range(bytes->size(), read.image_bytes);
    recipe_->checkpoints->note(decode::CheckpointEvent::kUsed);
    return true;
  }
  recipe_->checkpoints->note_refused_range();
  if (!bytes && !storage::is_of_change(bytes.error())) return false;
  recipe_->checkpoints->note(decode::CheckpointEvent::kChanged);
  if (const auto image = recipe_->records->locate_image(sample, recipe_->image_field); image && *image)
    recipe_->checkpoints->forget_outline(key_of(*storage_, **image));
  return false;
}

void PartReads::note(std::uint64_t sample, const memory::Record& record, const storage::Version& version) const {
  const memory::Record::Field& image = record.fields[recipe_->image_field];
  if (image.absent || image.bytes.empty()) return;
  const auto located = recipe_->records->locate_image(sample, recipe_->image_field);
  if (located && *located) note_outline(*storage_, **located, image.bytes, version, *recipe_->checkpoints);
}

}  // namespace feedline::pipeline
