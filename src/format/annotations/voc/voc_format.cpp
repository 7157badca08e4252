// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/voc/voc_format.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "format/annotations/image_folder.h"
#include "format/annotations/inspected_samples.h"
#include "format/annotations/sample_pieces.h"
#include "format/annotations/voc/voc_annotation.h"
#include "format/checksum.h"
#include "format/finding.h"
#include "format/folder/listed_folders.h"

namespace feedline::format {
namespace {

std::unexpected<Error> located(Error error, const std::string& source) {
  error.where.dataset = source;
  return std::unexpected(std::move(error));
}

}  // namespace

Result<std::shared_ptr<const RecordFormat>> VocFormat::open(const std::string& source, const OpenOptions& options) {
  auto set = list_voc(without_end_slashes(source), options);
  if (!set) return located(std::move(set).error(), source);
  return std::shared_ptr<const RecordFormat>(new VocFormat(std::move(*set), options));
}

VocFormat::VocFormat(VocSet set, OpenOptions options)
    : set_(std::move(set)), options_(std::move(options)), descriptions_(descriptions_of(set_.fields)) {
  for (std::size_t i = 0; i < set_.fields.size(); ++i)
    if (set_.fields[i].part == Part::kMask || set_.fields[i].part == Part::kObjectMask) masks_.push_back(i);
  most_pieces_ = (set_.reads_image ? 1 : 0) + (set_.reads_objects ? 1 : 0) + masks_.size();
  fingerprint_ = compute_fingerprint();
}

std::uint64_t VocFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(name());
  for (const PartField& field : set_.fields) {
    fingerprint.add(field.description.name);
    fingerprint.add(static_cast<std::uint64_t>(field.part));
  }
  for (const std::string& key : set_.keys) fingerprint.add(key);
  for (const std::string& one : set_.classes) fingerprint.add(one);
  return fingerprint.value();
}

Result<std::vector<std::string>> VocFormat::paths_of(std::uint64_t index) const {
  std::vector<std::string> paths;
  const auto add = [&](const std::string& path) { paths.push_back(options_.storage->below(set_.root, path)); };
  if (set_.reads_image && set_.images[index].empty())
    return data_error("there is no image '" + set_.keys[index] + "' in JPEGImages", "format");
  if (set_.reads_image) add(set_.images[index]);
  if (set_.reads_objects) add(set_.annotation(index));
  for (const std::size_t field : masks_) add(set_.mask(index, set_.fields[field].part));
  return paths;
}

Where VocFormat::where(std::uint64_t index) const {
  FEEDLINE_CHECK(index < size());
  Where where;
  where.dataset = set_.root;
  where.key = set_.keys[index];
  where.record = index;
  if (const auto paths = paths_of(index)) where.shard = paths->front();
  return where;
}

std::unexpected<Error> VocFormat::failed(std::uint64_t index, const std::string& path, Error error) const {
  std::string stage = std::move(error.where.stage);
  error.where = where(index);
  error.where.stage = std::move(stage);
  if (!path.empty()) error.where.shard = path;
  return std::unexpected(std::move(error));
}

Result<void> VocFormat::read(std::uint64_t index, memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  const auto paths = paths_of(index);
  if (!paths) return failed(index, "", paths.error());
  std::vector<std::span<const std::byte>> pieces;
  std::size_t at = 0;
  if (auto done = read_pieces(*options_.storage, *paths, record, pieces, at); !done)
    return failed(index, (*paths)[at], done.error());
  return accept(index, pieces, record);
}

Result<void> VocFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  FEEDLINE_CHECK(index < size());
  auto paths = paths_of(index);
  if (!paths) return failed(index, "", paths.error());
  for (std::string& path : *paths) pieces.push_back({.reader = nullptr, .path = std::move(path)});
  return {};
}

Result<void> VocFormat::accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                               memory::Record& record) const {
  FEEDLINE_CHECK(index < size() && pieces.size() == most_pieces_);
  record.pin.reset();
  record.fields.assign(descriptions_.size(), {});
  record.bytes_read = 0;
  std::size_t piece = 0;
  ImageSize stated;
  const auto fail_at = [&](const Error& error) {
    const auto paths = paths_of(index);
    return failed(index, paths ? (*paths)[piece] : std::string(), error);
  };
  if (set_.reads_image) {
    if (auto taken = take_image(set_.fields, pieces[piece], record); !taken) return fail_at(taken.error());
    ++piece;
  }
  if (set_.reads_objects) {
    if (auto taken = take_objects(pieces[piece], record, stated); !taken) return fail_at(taken.error());
    ++piece;
  }
  for (const std::size_t field : masks_) {
    const auto bytes = pieces[piece];
    if (bytes.empty()) return fail_at(data_error("an empty file", "format").error());
    record.fields[field].bytes = bytes;
    record.bytes_read += bytes.size();
    ++piece;
  }
  if (record.bytes_read > record.most_bytes)
    return failed(index, "", memory::too_large(record.bytes_read, record.most_bytes).error());
  if (!set_.reads_image) return {};
  set_frame(set_.fields, frame_by_size(pieces.front(), stated), record);
  for (const std::size_t field : masks_)  // a mask may have a different size
    if (const auto mask = read_frame(record.fields[field].bytes))
      record.fields[field].frame = frame_by_size(pieces.front(), {mask->width, mask->height});
  return {};
}

Result<void> VocFormat::take_objects(std::span<const std::byte> xml, memory::Record& record, ImageSize& stated) const {
  FEEDLINE_TRY(VocAnnotation annotation, read_voc_annotation({reinterpret_cast<const char*>(xml.data()), xml.size()}));
  stated = annotation.size;
  ImageObjects objects;
  objects.objects = std::move(annotation.objects);
  for (std::size_t i = 0; i < objects.objects.size(); ++i) {
    const auto found = std::ranges::lower_bound(set_.classes, annotation.names[i]);
    if (found == set_.classes.end() || *found != annotation.names[i])
      return data_error("object " + std::to_string(i) + " is a '" + annotation.names[i] +
                            "', which is not among the classes of ImageSets/Main",
                        "format");
    objects.objects[i].label = found - set_.classes.begin();
  }
  record.bytes_read += xml.size();
  return fill_objects(objects, set_.fields, most_pieces_, record);
}

Result<SampleFiles> VocFormat::files(std::uint64_t index) const {
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  FEEDLINE_CHECK_OK(read(index, record));
  return files_of(set_.fields,
                  set_.reads_image ? std::string_view(last_of(set_.images[index])) : set_.keys[index] + ".", record);
}

Result<SampleFileSizes> VocFormat::file_sizes(std::uint64_t index) const {
  FEEDLINE_TRY(const SampleFiles sample, files(index));
  return sizes_of(sample);
}

std::string VocFormat::summary() const {
  return set_.list.empty() ? std::string("all samples in the folder, because ImageSets has no list \"train\"")
                           : "samples of the list '" + set_.list + "'";
}

Result<Inspection> VocFormat::inspect(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(auto set, list_voc(without_end_slashes(source), options));
  const VocFormat format(std::move(set), options);
  Inspection inspection;
  Findings findings;
  inspect_samples(
      format, format.set_.keys,
      [](std::uint64_t, const memory::Record& record) { return record.fields.front().bytes.size(); }, inspection,
      findings);
  if (format.set_.reads_image) inspection.extensions.push_back({"jpg", format.size()});
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
