// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/yolo/yolo_format.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "format/annotations/image_folder.h"
#include "format/annotations/inspected_samples.h"
#include "format/annotations/sample_pieces.h"
#include "format/checksum.h"
#include "format/finding.h"

namespace feedline::format {

Result<std::shared_ptr<const RecordFormat>> YoloFormat::open(const std::string& source, const OpenOptions& options) {
  auto set = list_yolo(source, options);
  if (set) return std::shared_ptr<const RecordFormat>(new YoloFormat(std::move(*set), options));
  set.error().where.dataset = source;
  return std::unexpected(std::move(set).error());
}

YoloFormat::YoloFormat(YoloSet set, OpenOptions options)
    : set_(std::move(set)), options_(std::move(options)), descriptions_(descriptions_of(set_.fields)) {
  fingerprint_ = compute_fingerprint();
}

std::uint64_t YoloFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(name());
  for (const PartField& field : set_.fields) {
    fingerprint.add(field.description.name);
    fingerprint.add(static_cast<std::uint64_t>(field.part));
  }
  for (std::uint64_t i = 0; i < size(); ++i) {
    fingerprint.add(set_.keys[i]);
    fingerprint.add(std::uint64_t{set_.labels[i].empty()});
  }
  for (const std::string& one : set_.classes) fingerprint.add(one);
  return fingerprint.value();
}

std::vector<std::string> YoloFormat::paths_of(std::uint64_t index) const {
  std::vector<std::string> paths{set_.images[index]};
  if (!set_.labels[index].empty()) paths.push_back(set_.labels[index]);
  return paths;
}

Where YoloFormat::where(std::uint64_t index) const {
  FEEDLINE_CHECK(index < size());
  Where where;
  where.dataset = set_.root;
  where.shard = set_.images[index];
  where.key = set_.keys[index];
  where.record = index;
  return where;
}

std::unexpected<Error> YoloFormat::failed(std::uint64_t index, const std::string& path, Error error) const {
  std::string stage = std::move(error.where.stage);
  error.where = where(index);
  error.where.stage = std::move(stage);
  error.where.shard = path;
  return std::unexpected(std::move(error));
}

Result<void> YoloFormat::read(std::uint64_t index, memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  const auto paths = paths_of(index);
  std::vector<std::span<const std::byte>> pieces;
  std::size_t at = 0;
  if (auto done = read_pieces(*options_.storage, paths, record, pieces, at); !done)
    return failed(index, paths[at], done.error());
  return accept(index, pieces, record);
}

Result<void> YoloFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  FEEDLINE_CHECK(index < size());
  for (std::string& path : paths_of(index)) pieces.push_back({.reader = nullptr, .path = std::move(path)});
  return {};
}

Result<void> YoloFormat::accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                                memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  record.pin.reset();
  record.fields.assign(descriptions_.size(), {});
  record.bytes_read = 0;
  if (auto taken = take_image(set_.fields, pieces[0], record); !taken)
    return failed(index, set_.images[index], taken.error());
  auto frame = read_frame(pieces[0]);
  if (!frame) return failed(index, set_.images[index], frame.error());
  frame->is_turned = true;  // labels are fractions of the rotated image, as in Ultralytics
  const auto text = pieces.size() > 1 ? pieces[1] : std::span<const std::byte>();
  record.bytes_read += text.size();
  const auto objects =
      read_yolo_labels({reinterpret_cast<const char*>(text.data()), text.size()}, set_.lines, turned_size(*frame));
  if (!objects) return failed(index, set_.labels[index], objects.error());
  if (auto filled = fill_objects(*objects, set_.fields, kPieces, record); !filled)
    return failed(index, set_.labels[index], filled.error());
  set_frame(set_.fields, *frame, record);
  return {};
}

Result<SampleFiles> YoloFormat::files(std::uint64_t index) const {
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  FEEDLINE_CHECK_OK(read(index, record));
  return files_of(set_.fields, set_.keys[index], record);
}

Result<SampleFileSizes> YoloFormat::file_sizes(std::uint64_t index) const {
  FEEDLINE_TRY(const SampleFiles sample, files(index));
  return sizes_of(sample);
}

std::string YoloFormat::summary() const {
  if (set_.unlabeled == 0) return {};
  return std::to_string(set_.unlabeled) + " images have no label file and thus no objects";
}

Result<Inspection> YoloFormat::inspect(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(auto set, list_yolo(source, options));
  const YoloFormat format(std::move(set), options);
  Inspection inspection;
  Findings findings;
  const auto image_bytes = [&](std::uint64_t index, const memory::Record&) {
    const auto stat = options.storage->stat(format.set_.images[index]);
    return stat ? stat->bytes : 0;
  };
  inspect_samples(format, format.set_.keys, image_bytes, inspection, findings);
  std::map<std::string, std::uint64_t> extensions;
  for (const std::string& image : format.set_.images) ++extensions[extension_of(image)];
  if (format.set_.unlabeled > 0) findings.add({"unlabeled_image", Severity::kNote, source, "", {}, format.summary()});
  for (const auto& [extension, count] : extensions) inspection.extensions.push_back({extension, count});
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
