// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/annotation_format.h"

#include <utility>

#include "base/check.h"
#include "format/annotations/image_folder.h"
#include "format/annotations/sample_pieces.h"

namespace feedline::format {

AnnotationFormat::AnnotationFormat(std::string source, OpenOptions options, std::vector<PartField> parts)
    : OpenedFormat(std::move(source), std::move(options)), parts_(std::move(parts)) {
  fields_ = descriptions_of(parts_);
}

void AnnotationFormat::add_parts(Fingerprint& fingerprint) const {
  for (const PartField& field : parts_) {
    fingerprint.add(field.description.name);
    fingerprint.add(static_cast<std::uint64_t>(field.part));
  }
}

void AnnotationFormat::clear(memory::Record& record) const {
  record.pin.reset();
  record.fields.assign(fields_.size(), {});
  record.bytes_read = 0;
}

Where AnnotationFormat::where(std::uint64_t index) const {
  FEEDLINE_CHECK(index < size());
  Where where;
  where.dataset = source_;
  where.key = key(index);
  where.record = index;
  if (const auto files = paths(index)) where.shard = files->empty() ? source_ : files->front();
  return where;
}

Result<void> AnnotationFormat::read(std::uint64_t index, memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  const auto files = paths(index);
  if (!files) return failed_at(where(index), files.error());
  std::vector<std::span<const std::byte>> pieces;
  std::size_t piece = 0;
  if (auto done = read_pieces(*options_.storage, *files, record, pieces, piece); !done) {
    Where location = where(index);
    location.shard = (*files)[piece];
    return failed_at(std::move(location), std::move(done).error());
  }
  return accept(index, pieces, record);
}

Result<bool> AnnotationFormat::read_field(std::uint64_t index, std::size_t field, memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  clear(record);
  std::string file;
  auto filled = fill_field(index, field, record, file);
  if (filled) return filled;
  Where location = where(index);
  if (!filled.error().where.shard.empty())
    location.shard = filled.error().where.shard;
  else if (!file.empty())
    location.shard = std::move(file);
  return failed_at(std::move(location), std::move(filled).error());
}

Result<void> AnnotationFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  FEEDLINE_CHECK(index < size());
  auto files = paths(index);
  if (!files) return failed_at(where(index), std::move(files).error());
  for (std::string& path : *files) pieces.push_back({.reader = nullptr, .path = std::move(path)});
  return {};
}

Result<void> AnnotationFormat::accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                                      memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  clear(record);
  std::size_t piece = 0;
  auto filled = fill(index, pieces, record, piece);
  if (filled) return {};
  Where location = where(index);
  if (!filled.error().where.shard.empty())
    location.shard = filled.error().where.shard;
  else if (const auto files = paths(index); files && piece < files->size())
    location.shard = (*files)[piece];
  return failed_at(std::move(location), std::move(filled).error());
}

Result<SampleFiles> AnnotationFormat::files(std::uint64_t index) const {
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  FEEDLINE_CHECK_OK(read(index, record));
  return files_of(parts_, packed_name(index), record);
}

}  // namespace feedline::format
