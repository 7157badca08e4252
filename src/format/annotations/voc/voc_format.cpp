// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/voc/voc_format.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "format/annotations/image_folder.h"
#include "format/annotations/inspected_samples.h"
#include "format/annotations/voc/voc_annotation.h"
#include "format/folder/listed_folders.h"
#include "format/shards/finding.h"

namespace feedline::format {

Result<std::shared_ptr<const Format>> VocFormat::open(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(VocSet set, list_voc(without_end_slashes(source), options));
  return std::shared_ptr<const Format>(new VocFormat(std::move(set), options));
}

VocFormat::VocFormat(VocSet set, OpenOptions options)
    : AnnotationFormat(set.root, std::move(options), set.fields), set_(std::move(set)) {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i].part == Part::kMask || parts_[i].part == Part::kObjectMask) masks_.push_back(i);
  most_pieces_ = (needs_image() ? 1 : 0) + (set_.reads_objects ? 1 : 0) + masks_.size();
  classes_ = set_.classes;
  fingerprint_ = compute_fingerprint();
}

std::uint64_t VocFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(name());
  add_parts(fingerprint);
  for (const std::string& key : set_.keys) fingerprint.add(key);
  for (const std::string& one : classes_) fingerprint.add(one);
  return fingerprint.value();
}

Result<std::vector<std::string>> VocFormat::paths(std::uint64_t index) const {
  std::vector<std::string> paths;
  const auto add = [&](const std::string& path) { paths.push_back(options_.storage->below(set_.root, path)); };
  if (needs_image() && set_.images[index].empty())
    return data_error("there is no image '" + set_.keys[index] + "' in JPEGImages", "format");
  if (needs_image()) add(set_.images[index]);
  if (set_.reads_objects) add(set_.annotation(index));
  for (const std::size_t field : masks_) add(set_.mask(index, parts_[field].part));
  return paths;
}

std::string VocFormat::packed_name(std::uint64_t index) const {
  return needs_image() ? std::string(last_of(set_.images[index])) : set_.keys[index] + ".";
}

Result<void> VocFormat::fill(std::uint64_t /*index*/, std::span<const std::span<const std::byte>> pieces,
                             memory::Record& record, std::size_t& piece) const {
  FEEDLINE_CHECK(pieces.size() == most_pieces_);
  ImageSize stated;
  if (needs_image()) {
    FEEDLINE_CHECK_OK(take_image(parts_, pieces[piece], record));
    ++piece;
  }
  if (set_.reads_objects) {
    FEEDLINE_CHECK_OK(take_objects(pieces[piece], parts_, most_pieces_, record, stated));
    ++piece;
  }
  for (const std::size_t field : masks_) {
    if (pieces[piece].empty()) return data_error("an empty file", "format");
    record.fields[field].bytes = pieces[piece];
    record.bytes_read += pieces[piece].size();
    ++piece;
  }
  if (record.bytes_read > record.most_bytes) return memory::too_large(record.bytes_read, record.most_bytes);
  if (!needs_image()) return {};
  set_frame(parts_, frame_by_size(pieces.front(), stated), record);
  for (const std::size_t field : masks_)  // a mask may have a different size
    if (const auto mask = read_frame(record.fields[field].bytes))
      record.fields[field].frame = frame_by_size(pieces.front(), {mask->width, mask->height});
  return {};
}

// Reads only the XML file.
Result<bool> VocFormat::fill_field(std::uint64_t index, std::size_t field, memory::Record& record,
                                   std::string& file) const {
  if (parts_[field].part == Part::kImage || std::ranges::count(masks_, field) > 0) return false;
  file = options_.storage->below(set_.root, set_.annotation(index));
  FEEDLINE_TRY(const auto xml, options_.storage->read_all(file, record.storage, record.most_bytes));
  ImageSize stated;
  FEEDLINE_CHECK_OK(take_objects(xml, std::span(parts_).subspan(field, 1), 0, record, stated));
  return true;
}

Result<void> VocFormat::take_objects(std::span<const std::byte> xml, std::span<const PartField> fields,
                                     std::size_t pieces, memory::Record& record, ImageSize& stated) const {
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
  return fill_objects(objects, fields, pieces, record);
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
  if (format.needs_image()) inspection.extensions.push_back({"jpg", format.size()});
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
