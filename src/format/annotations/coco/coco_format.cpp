// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/coco/coco_format.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "format/annotations/coco/coco_source.h"
#include "format/annotations/image_folder.h"
#include "format/annotations/image_size.h"
#include "format/checksum.h"

namespace feedline::format {

Result<std::shared_ptr<const RecordFormat>> CocoFormat::open(const std::string& source, const OpenOptions& options) {
  const auto located = [&source](Error error) {
    error.where.dataset = source;
    return std::unexpected(std::move(error));
  };
  const auto skips_crowd = check_coco_options(options);
  if (!skips_crowd) return located(skips_crowd.error());
  auto table = open_coco_table(source, options);
  if (!table) return located(std::move(table).error());
  if (table->images() == 0) return located(config_error("the JSON lists no images").error());
  auto fields = CocoFields::choose(*table, options.fields, *skips_crowd);
  if (!fields) return located(std::move(fields).error());
  std::string images;
  if (has_part(fields->fields(), Part::kImage)) {
    auto found = find_images(source, *table, options);
    if (!found) return located(std::move(found).error());
    images = std::move(*found);
  }
  return std::shared_ptr<const RecordFormat>(
      new CocoFormat(source, options, std::move(images), std::move(*table), std::move(*fields)));
}

CocoFormat::CocoFormat(std::string source, OpenOptions options, std::string images, CocoTable table, CocoFields fields)
    : source_(std::move(source)),
      options_(std::move(options)),
      images_(std::move(images)),
      table_(std::move(table)),
      fields_(std::move(fields)),
      descriptions_(descriptions_of(fields_.fields())) {
  for (std::uint64_t i = 0; i < table_.category_ids().size(); ++i) classes_.emplace_back(table_.category_name(i));
  fingerprint_ = compute_fingerprint();
}

std::uint64_t CocoFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(table_.fingerprint());
  fingerprint.add(std::string_view(fields_.skips_crowd() ? "skip" : "keep"));
  for (const PartField& field : fields_.fields()) {
    fingerprint.add(field.description.name);
    fingerprint.add(static_cast<std::uint64_t>(field.part));
  }
  return fingerprint.value();
}

Where CocoFormat::where(std::uint64_t index) const {
  FEEDLINE_CHECK(index < size());
  Where where;
  where.dataset = source_;
  where.key = table_.file_name(index);
  where.shard = needs_image() ? file(index) : source_;
  where.record = index;
  return where;
}

std::unexpected<Error> CocoFormat::failed(std::uint64_t index, Error error) const {
  Where place = where(index);
  place.stage = std::move(error.where.stage);
  if (error.where.offset) {
    place.shard = source_;
    place.offset = error.where.offset;
  }
  error.where = std::move(place);
  return std::unexpected(std::move(error));
}

Result<void> CocoFormat::read(std::uint64_t index, memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  if (!needs_image()) return accept(index, {}, record);
  options_.storage->name_below(images_, table_.file_name(index), record.name);
  const auto bytes = options_.storage->read_all(record.name, record.storage, record.most_bytes);
  if (!bytes) return failed(index, bytes.error());
  return accept(index, std::span(&*bytes, 1), record);
}

Result<void> CocoFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  FEEDLINE_CHECK(index < size());
  if (needs_image()) pieces.push_back({.reader = nullptr, .path = file(index)});
  return {};
}

Result<void> CocoFormat::accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                                memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  record.pin.reset();
  record.fields.assign(descriptions_.size(), {});
  record.bytes_read = 0;
  if (needs_image())
    if (auto taken = take_image(fields_.fields(), pieces.front(), record); !taken) return failed(index, taken.error());
  if (auto filled = fields_.fill(table_, index, record); !filled) return failed(index, filled.error());
  if (!needs_image()) return {};
  const CocoImage& image = table_.image(index);
  const ImageSize stated{static_cast<int>(image.width), static_cast<int>(image.height)};
  set_frame(fields_.fields(), frame_by_size(pieces.front(), stated), record);
  return {};
}

Result<SampleFiles> CocoFormat::files(std::uint64_t index) const {
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  FEEDLINE_CHECK_OK(read(index, record));
  return files_of(fields_.fields(), table_.file_name(index), record);
}

// Reads the sample, because the sizes of its files are not stored.
Result<SampleFileSizes> CocoFormat::file_sizes(std::uint64_t index) const {
  FEEDLINE_TRY(const SampleFiles sample, files(index));
  return sizes_of(sample);
}

std::string CocoFormat::summary() const {
  std::string text = "images in '" + images_ + "'";
  if (!needs_image()) text = "no images are read";
  std::uint64_t crowd = 0;
  for (const CocoAnnotation& one : table_.annotations()) crowd += one.is_crowd() ? 1 : 0;
  if (fields_.skips_crowd() && crowd > 0)
    text += "\n" + std::to_string(crowd) + " crowd annotations were skipped; crowd=\"keep\" includes them";
  if (table_.orphans() > 0)
    text += "\n" + std::to_string(table_.orphans()) + " annotations were skipped: their images are not in the file";
  return text;
}

}  // namespace feedline::format
